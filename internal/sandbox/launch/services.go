package launch

// services is /etc/services for inside, by which getservbyname(3) knows ports: those of IANA's list that programs name.
const services = `echo 7/tcp
echo 7/udp
discard 9/tcp
discard 9/udp
daytime 13/tcp
ftp-data 20/tcp
ftp 21/tcp
ssh 22/tcp
telnet 23/tcp
smtp 25/tcp mail
time 37/tcp
time 37/udp
whois 43/tcp nicname
domain 53/tcp
domain 53/udp
bootps 67/udp
bootpc 68/udp
tftp 69/udp
gopher 70/tcp
finger 79/tcp
http 80/tcp www
kerberos 88/tcp
kerberos 88/udp
pop3 110/tcp pop-3
sunrpc 111/tcp portmapper
sunrpc 111/udp portmapper
auth 113/tcp ident
nntp 119/tcp
ntp 123/udp
netbios-ns 137/udp
netbios-dgm 138/udp
netbios-ssn 139/tcp
imap2 143/tcp imap
snmp 161/udp
snmp-trap 162/udp snmptrap
bgp 179/tcp
irc 194/tcp
ldap 389/tcp
ldap 389/udp
https 443/tcp
https 443/udp
microsoft-ds 445/tcp
submissions 465/tcp smtps
isakmp 500/udp
syslog 514/udp
printer 515/tcp
rtsp 554/tcp
submission 587/tcp
ipp 631/tcp
ldaps 636/tcp
domain-s 853/tcp
rsync 873/tcp
imaps 993/tcp
pop3s 995/tcp
socks 1080/tcp
openvpn 1194/udp
ms-sql-s 1433/tcp
l2tp 1701/udp
radius 1812/udp
radius-acct 1813/udp
mqtt 1883/tcp
nfs 2049/tcp
nfs 2049/udp
docker 2375/tcp
docker-s 2376/tcp
etcd-client 2379/tcp
mysql 3306/tcp
ms-wbt-server 3389/tcp
svn 3690/tcp
ipsec-nat-t 4500/udp
sip 5060/tcp
sip 5060/udp
sips 5061/tcp
xmpp-client 5222/tcp
xmpp-server 5269/tcp
mdns 5353/udp
postgresql 5432/tcp
amqps 5671/tcp
amqp 5672/tcp
x11 6000/tcp
redis 6379/tcp
ircs-u 6697/tcp
http-alt 8080/tcp
secure-mqtt 8883/tcp
git 9418/tcp
`

// protocols is /etc/protocols for inside.
const protocols = `ip 0 IP
icmp 1 ICMP
igmp 2 IGMP
tcp 6 TCP
udp 17 UDP
ipv6 41 IPv6
gre 47 GRE
esp 50 ESP
ah 51 AH
ipv6-icmp 58 IPv6-ICMP
sctp 132 SCTP
`

// osRelease is /etc/os-release for inside (os-release(5)). The host's would name a package manager that is not there.
const osRelease = `NAME=claudebox
ID=claudebox
ID_LIKE=nixos
PRETTY_NAME="claudebox, a sandbox with programs of nixpkgs"
`

// machineID is /etc/machine-id for inside (machine-id(5)), without which D-Bus and browsers complain. It is the same in
// all sandboxes, as the host's tells whose machine it is.
const machineID = "c1a0deb0c5a3d4bf9e2b7d1f60e8a94c\n"
