// Claudebox-helper belongs to claudebox, which starts it for what few sessions
// need, or none before its agent runs: secrets and ssh keys that stay outside, the
// user's systemd. It is a program of its own because of its libraries, which no
// other start is to pay for.
package main

import (
	"os"

	"claudebox/internal/linux/aside"
	"claudebox/internal/network/hostnet"
	"claudebox/internal/network/policy"
	"claudebox/internal/sandbox/scope"
	"claudebox/internal/sandbox/systemd"
	"claudebox/internal/secret/broker"
	"claudebox/internal/secret/sign"
	"claudebox/internal/secret/sshagent"
	"claudebox/internal/secret/swap"
)

// works are by the word that it is called with.
var works = map[string]func() error{
	broker.Name:     swap.Run,
	broker.PostWord: func() error { return aside.Answer(swap.PostTokens) },
	sshagent.Name:   sign.Run,
	sshagent.Word:   func() error { return aside.Answer(sign.Look) },
	scope.Word:      func() error { return aside.Answer(systemd.Do) },
	policy.Word: func() error {
		return aside.Answer(func(struct{}) (policy.Host, error) { return hostnet.Read() })
	},
}

func main() {
	work, known := works[os.Args[0]]
	if !known || work() != nil {
		os.Exit(1)
	}
}
