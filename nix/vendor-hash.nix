"sha256-0oGp+rRDBqV4Be5LanQSeuWesWAr8JFfkgCvpnb9or8="
