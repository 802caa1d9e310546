package inside

import "fmt"

// operation is an operation of the worker protocol.
type operation struct {
	name string
	// answer reads the arguments and writes the answer. Nil: the operation is refused.
	answer func(*client)
	// arguments are those of a refused operation, so that the client can go on
	// after it: n a number, t a text, l a list of texts. After any other operation the
	// client is disconnected (closes), since it is not known where its next request begins.
	arguments string
	closes    bool
}

// operations are those of the protocol's versions up to 1.38. An operation that is not
// listed is refused as well.
var operations = map[uint64]operation{
	1:  {name: "IsValidPath", answer: (*client).isValid},
	6:  {name: "QueryReferrers", answer: (*client).referrers},
	19: {name: "SetOptions", answer: (*client).setOptions},
	26: {name: "QueryPathInfo", answer: (*client).info},
	31: {name: "QueryValidPaths", answer: (*client).valid},
	33: {name: "QueryValidDerivers", answer: (*client).derivers},
	43: {name: "QueryRealisation", answer: (*client).realisation},

	3:  {name: "HasSubstitutes", arguments: "t"},
	4:  {name: "QueryPathHash", arguments: "t"},
	5:  {name: "QueryReferences", arguments: "t"},
	7:  {name: "AddToStore", closes: true},
	8:  {name: "AddTextToStore", arguments: "ttl"},
	9:  {name: "BuildPaths", arguments: "ln"},
	10: {name: "EnsurePath", arguments: "t"},
	11: {name: "AddTempRoot", arguments: "t"},
	12: {name: "AddIndirectRoot", arguments: "t"},
	13: {name: "SyncWithGC"},
	14: {name: "FindRoots"},
	16: {name: "ExportPath", arguments: "tn"},
	18: {name: "QueryDeriver", arguments: "t"},
	20: {name: "CollectGarbage", arguments: "nlnnnnn"},
	21: {name: "QuerySubstitutablePathInfo", arguments: "t"},
	22: {name: "QueryDerivationOutputs", arguments: "t"},
	23: {name: "QueryAllValidPaths"},
	24: {name: "QueryFailedPaths"},
	25: {name: "ClearFailedPaths", arguments: "l"},
	27: {name: "ImportPaths", closes: true},
	28: {name: "QueryDerivationOutputNames", arguments: "t"},
	29: {name: "QueryPathFromHashPart", arguments: "t"},
	30: {name: "QuerySubstitutablePathInfos", closes: true},
	32: {name: "QuerySubstitutablePaths", arguments: "l"},
	34: {name: "OptimiseStore"},
	35: {name: "VerifyStore", arguments: "nn"},
	36: {name: "BuildDerivation", closes: true},
	37: {name: "AddSignatures", arguments: "tl"},
	38: {name: "NarFromPath", arguments: "t"},
	39: {name: "AddToStoreNar", closes: true},
	40: {name: "QueryMissing", arguments: "l"},
	41: {name: "QueryDerivationOutputMap", arguments: "t"},
	42: {name: "RegisterDrvOutput", arguments: "t"},
	44: {name: "AddMultipleToStore", closes: true},
	45: {name: "AddBuildLog", closes: true},
	46: {name: "BuildPathsWithResults", arguments: "ln"},
	47: {name: "AddPermRoot", arguments: "tt"},
}

// refuse reads the arguments of an operation that is not allowed and answers with an error.
// It reports whether the client can go on.
func (c *client) refuse(number uint64, o operation) bool {
	if o.name == "" {
		o = operation{name: fmt.Sprintf("operation %d", number), closes: true}
	}
	for _, kind := range o.arguments {
		switch kind {
		case 'n':
			c.Number()
		case 't':
			c.Text()
		case 'l':
			for n := c.Count(); n > 0 && c.Err() == nil; n-- {
				c.Text()
			}
		}
	}
	c.Refuse("the host's Nix store is read-only here (" + o.name + ")")
	return !o.closes
}

func (c *client) isValid() {
	path := c.Path()
	if c.Err() != nil {
		return
	}
	valid, err := c.host.Valid([]string{path})
	c.reply(err, func() { c.PutNumber(uint64(len(valid))) })
}

const (
	// atOnce is how many paths of a list are sent to the daemon in one request.
	atOnce = 256
	// few is up to how many paths several clients may each have in memory at once; a longer list is answered for one
	// client at a time.
	few = 16
)

// valid reads a list of paths in batches and asks about each batch; it keeps only the valid paths in memory.
func (c *client) valid() {
	count := c.Count()
	if count > few {
		var done func()
		c.Meanwhile(func() { done = c.host.waitTurn() })
		defer done()
	}
	known, all := map[string]bool{}, []string{}
	var err error
	for count > 0 && c.Err() == nil {
		batch := make([]string, 0, min(count, atOnce))
		for ; count > 0 && len(batch) < atOnce && c.Err() == nil; count-- {
			batch = append(batch, c.Path())
		}
		if c.Err() != nil || err != nil {
			continue // the rest of the request still has to be read
		}
		var valid []string
		if c.Meanwhile(func() { valid, err = c.host.Valid(batch) }); err != nil {
			continue
		}
		for _, path := range valid {
			if !known[path] {
				known[path] = true
				all = append(all, path)
			}
		}
	}
	c.Number() // whether to substitute: the host never does
	c.reply(err, func() { c.PutTexts(all) })
}

func (c *client) info() {
	path := c.Path()
	if c.Err() != nil {
		return
	}
	info, err := c.host.Info(path)
	if info != nil && len(info.References) > few {
		info = nil
		defer c.host.waitTurn()()
		info, err = c.host.Info(path)
	}
	c.reply(err, func() { c.PutInfo(info) })
}

func (c *client) referrers() { c.related(c.host.Referrers) }

func (c *client) derivers() { c.related(c.host.Derivers) }

func (c *client) related(ask func(path string) ([]string, error)) {
	path := c.Path()
	if c.Err() != nil {
		return
	}
	defer c.host.waitTurn()()
	list, err := ask(path)
	c.reply(err, func() { c.PutTexts(list) })
}

// setOptions reads a client's options and ignores them: they do not concern the host.
func (c *client) setOptions() {
	for range 12 {
		c.Number()
	}
	for n := c.Count(); n > 0 && c.Err() == nil; n-- {
		c.Text()
		c.Text()
	}
	c.reply(nil, func() {})
}

// realisation answers that none is known: outputs of content-addressed
// derivations are built inside. The host's daemon is not asked, since one without that
// feature hangs up.
func (c *client) realisation() {
	c.Text()
	c.reply(nil, func() { c.PutNumber(0) })
}

// reply answers with err, or, if it is nil, with what put writes. It writes nothing after
// a breach of the protocol, which [serve] answers.
func (c *client) reply(err error, put func()) {
	switch {
	case c.Err() != nil:
	case err != nil:
		c.Refuse(oneLine(err))
	default:
		c.Succeed()
		put()
	}
}
