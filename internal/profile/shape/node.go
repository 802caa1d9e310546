package shape

import "claudebox/internal/diag"

// MaxSize is the largest document that is read, in bytes. A profile with ten
// thousand packages has a quarter of it.
const MaxSize = 1 << 20

// Parser reads the syntax of a document: a file to the node of its one value,
// or to what is wrong with it. It is handed in: a launch whose plan is kept
// reads no document, and should not load what reads them.
type Parser func(doc *Document, src []byte) (*Node, *diag.Problem)

// NodeKind is what a [Node] is in the syntax.
type NodeKind int

// The kinds of nodes, as YAML has them.
const (
	ScalarNode NodeKind = iota
	SequenceNode
	MappingNode
	AliasNode
)

// Node is one value in the syntax of a document, before it has a meaning.
type Node struct {
	Kind    NodeKind
	Tag     string  // its type in short form, "!!str", also where the document says none
	Tagged  bool    // the document says the tag
	Value   string  // a scalar's text
	Content []*Node // a sequence's items; keys and values of a mapping by turns
	Alias   *Node   // what an alias stands for; it may hold the alias itself
	Line    int     // counts from 1, as Column does
	Column  int

	Comment string // of a node that is to be written: what stands behind it
	Quoted  bool   // and whether it is put in double quotes
}
