// Package internal holds claudebox's packages. No arrow points back: a
// package imports only what stands above it, and nothing in the program imports
// cli. The table in architecture_test.go says who may import whom, and is held
// by it.
//
//	alone        a test in a process of its own
//	stack        room for the first goroutine, from the beginning
//	diag         what is said when something is wrong
//	storepath    the form of a store path
//	pathname     clean paths, compared by their text
//	smallfile    whole files that may not be what their name says
//	cachefile    files that are kept only to save time
//	beneath      a folder that an agent can write, looked into without following links
//	leak         text that is probably a secret, and why
//	layout       text for people, in columns
//	hostpattern  which hosts a list admits
//	forbidden    the addresses that are not the internet
//	host         who runs claudebox, where, with which environment
//	profile      documents to a valid Profile, or every fault with its place
//	profile/syntax YAML, read and written
//	nixdaemon    the Nix daemon's worker protocol
//	gcroot       what keeps a plan's store paths between launches
//	nixeval      one evaluation of many attributes
//	resolve      package names to store paths
//	plan         the pinned plan: a pure function of profile and resolution
//	plan/diff    what changed from one plan to another
//	gitconfig    git's configuration files, read without running git
//	gitdir       the git folders of a project, and what they refer to
//	gitindex     which files a repository tracks
//	gitdefuse    a git folder that an agent made, made harmless
//	survey       one walk of a project: places of git, sockets, files by name
//	hostrun      the files that the host's tools execute, and what that means
//	secretfile   the files that hold secrets, by name and content
//	lent         secrets in the folders that the user lends an agent
//	placeholder  empty files that hold a place against an agent while it runs
//	project      the folder that is given away, its repository, what the host executes in it
//	agenthome    what is made in the agent's home from the user's own
//	login        the user's Claude login, lent to an agent and brought back
//	state        the instance's folder: the agent's home between sessions
//	within       system calls in the namespaces of a sandbox, from outside
//	proctree     which processes a process has started
//	cover        what covers a file, laid over it again when the host replaces it
//	aftermath    what a session left: made harmless, and told
//	instances    what is kept for projects, listed and chosen from
//	agent        the program that runs inside, and what its loader needs
//	seccomp      the system call filter
//	netns        sockets made in a sandbox's network namespace, from outside
//	netns/nstest a network namespace for tests
//	relay        bytes carried between two TCP connections
//	ports        TCP ports carried between host and sandbox
//	proxy        the only way out of tier allow
//	netlink      requests to the kernel's routing and packet filter
//	hostnet      this machine's own addresses and networks, and their changes
//	netfilter    the rules of what may leave a sandbox
//	network      the internet without the house: tier inet
//	timerslack   a Go runtime that wakes up less often while a program begins
//	selfpipe     signals that a thread can wait for together with a file
//	spawn        a program as the first process of its namespaces
//	storetree    the mounts of a closure, made beside bwrap
//	launch       plan and host to bwrap's words; the running sandbox
//	audit        what will enter, for a person
//	why          whether a launch shows a path, a variable or a host, and by which rule
//	doctor       what a launch needs, checked
//	packed       values as bytes, for caches
//	profiledir   where profiles and their plans lie
//	plancache    plans kept from the last launch
//	trust        what a project's own profile may do
//	session      one launch made of what the caller asked for, where effects meet
//	manual       the manual pages, from the tables of cli, profile and plan
//	start        the command line of a launch: the small program
//	cli          the whole command line
package internal
