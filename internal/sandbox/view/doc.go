// Package view answers what a path leads to inside a sandbox, before the sandbox is there: by the launch's mounts and
// links, its PATH, and the files of the host that the mounts show. It is the one answer to "is it inside?" of hooks,
// status lines, MCP servers, filters of git, editors and links. A test compares it with a sandbox.
//
// It reads files of the host, names and beginnings, and writes nothing.
package view
