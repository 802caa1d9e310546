// Claudebox-helper is started by claudebox for work that few sessions need, or that
// none needs before its agent runs: secrets and ssh keys that stay outside, the
// user's systemd. It is a program of its own because of the libraries that it links,
// which would slow the starts of claudebox that do not need them.
package main

import (
	"context"
	"fmt"
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

// works maps the name that the program is called by, argv[0], to its work.
var works = map[string]func() error{
	broker.Name:        swap.Run,
	broker.TokensWord:  func() error { return aside.Answer(swap.RequestTokens) },
	sshagent.Name:      sign.Run,
	sshagent.KeysStage: func() error { return aside.Answer(sign.AnswerKeys) },
	scope.StageName: func() error {
		return aside.Answer(func(r scope.Request) (struct{}, error) {
			return struct{}{}, systemd.Do(context.Background(), r) // it is killed when nothing waits for it any more
		})
	},
	policy.StageName: func() error {
		return aside.Answer(func(struct{}) (policy.Host, error) { return hostnet.Read() })
	},
}

func main() {
	work, known := works[os.Args[0]]
	if !known {
		os.Exit(1)
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
