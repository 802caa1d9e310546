package swap

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"claudebox/internal/secret/broker"
)

// isJudgedByBody reports whether a request is one of GraphQL, of which the path does not say what it does, and the
// profile does not let the secret be used for all of them.
func (s known) isJudgedByBody(t broker.Target, r request) bool {
	path := r.url.EscapedPath()
	_, is := broker.GraphQL(t.Host, path)
	return is && !slices.ContainsFunc(s.Write, func(p broker.Path) bool { return p.Admits(r.does(), path) })
}

const (
	mostDocument = 1 << 20 // bytes
	badDocument  = "with a GraphQL document that cannot be judged"
	badMutation  = "for a mutation of GraphQL that is not listed"
)

// judgeBody judges the document of a request of GraphQL. why says what is wrong, and at says where; if why is empty the
// request may be passed on, with the body that has been read.
func judgeBody(w http.ResponseWriter, r *http.Request, t broker.Target) (why, at string) {
	mutations, _ := broker.GraphQL(t.Host, r.URL.EscapedPath())
	if r.URL.RawQuery != "" {
		return badDocument, ""
	}
	if r.Method != http.MethodPost { // the schema
		if r.Method != http.MethodGet && r.Method != http.MethodHead || r.ContentLength != 0 {
			return badDocument, ""
		}
		return "", ""
	}
	body, err := bodyOf(w, r, mostDocument+1)
	document, ok := documentIn(body)
	names, whole := withInput(document)
	if err != nil || !ok || !whole || len(body) > mostDocument || !isJSON(r.Header, body) {
		return badDocument, ""
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	for _, name := range names {
		if !slices.Contains(mutations, name) {
			return badMutation, "#" + name[:min(len(name), 80)]
		}
	}
	return "", ""
}

// isJSON reports whether a body, which is JSON, is read as that: curl says that it is a form.
func isJSON(h http.Header, body []byte) bool {
	kind, _, _ := strings.Cut(strings.ToLower(strings.Join(h["Content-Type"], ",")), ";")
	switch strings.TrimSpace(kind) {
	case "application/json":
		return h["Content-Encoding"] == nil
	case "", "application/x-www-form-urlencoded":
		return h["Content-Encoding"] == nil && !bytes.ContainsAny(body, "&;")
	}
	return false
}

// documentIn returns the document in the body of a request: JSON with a query, said once, and nothing else that could
// name a document.
func documentIn(body []byte) (document string, ok bool) {
	in := json.NewDecoder(bytes.NewReader(body))
	if open, err := in.Token(); err != nil || open != json.Delim('{') {
		return "", false
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return "", false
		}
		var value any
		if in.Decode(&value) != nil {
			return "", false
		}
		switch key {
		case "query":
			text, is := value.(string)
			if ok || !is {
				return "", false
			}
			document, ok = text, true
		case "variables", "operationName":
		default:
			return "", false
		}
	}
	if _, err := in.Token(); err != nil { // the end of the object
		return "", false
	}
	_, err := in.Token()
	return document, ok && err == io.EOF
}

// withInput returns the names of the fields of a GraphQL document that have an argument called input: all mutations of
// GitHub and GitLab need one, and it cannot be said in another way. whole is false if the document can be read in two
// ways.
func withInput(document string) (names []string, whole bool) {
	var open []string // for each bracket that is open, the token before it
	last, before := "", ""
	for document != "" {
		var token string
		if token, document, whole = nextToken(document); !whole {
			return nil, false
		}
		switch token {
		case "":
			continue
		case "(", "{", "[":
			open = append(open, last)
		case ")", "}", "]":
			open = open[:max(0, len(open)-1)]
		case ":":
			if last == "input" && before != "$" && len(open) > 0 {
				names = append(names, open[len(open)-1])
			}
		}
		before, last = last, token
	}
	return names, true
}

// nextToken cuts a token off a document: a word or a sign; "" for a blank, a comment or a string (GraphQL, October
// 2021, 2.1). ok is false if there is none.
func nextToken(text string) (token, rest string, ok bool) {
	const blanks, signs = " \t\r\n,", "!$&().:=@[]{|}-"
	switch c := text[0]; {
	case strings.HasPrefix(text, "\ufeff"):
		return "", text[len("\ufeff"):], true
	case c == '"':
		n := lengthOfString(text)
		return "", text[n:], n > 0
	case c == '#':
		n := strings.IndexAny(text, "\r\n")
		if n < 0 {
			n = len(text)
		}
		return "", text[n:], true
	case isWord(c):
		n := len(text) - len(strings.TrimLeftFunc(text, func(r rune) bool { return r < 0x80 && isWord(byte(r)) }))
		return text[:n], text[n:], true
	}
	return strings.Trim(text[:1], blanks), text[1:], strings.IndexByte(blanks+signs, text[0]) >= 0
}

// lengthOfString returns how long the string is that a text begins with; 0: it has no end.
func lengthOfString(text string) int {
	const quotes = `"""`
	if strings.HasPrefix(text, quotes) {
		end := strings.Index(strings.ReplaceAll(text[3:], `\"""`, `\___`), quotes)
		if end < 0 {
			return 0
		}
		return end + 2*len(quotes)
	}
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i + 1
		case '\\':
			i++
			if i < len(text) && (text[i] == '\n' || text[i] == '\r') {
				return 0
			}
		case '\n', '\r':
			return 0
		}
	}
	return 0
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
