// Package launch binds a plan to this host, folder and moment, and runs it.
//
// [Bind] is a function of values: plan and host in, [Launch] out. A Launch is
// the only thing that is run and the only thing that is shown: the audit, the
// dry run and the shell script are all made from it. [Launch.Words] and the
// descriptors that the words name are pure as well; effects are in the files
// that end in _linux.go.
//
// What is trusted: the plan, bwrap, the host's /etc. What is not: everything
// below the project and the instance, where an earlier session may have
// planted links; sources there are opened without following any.
package launch
