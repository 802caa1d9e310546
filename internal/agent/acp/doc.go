// Package acp stands between an agent and an editor that speak the Agent Client Protocol over the agent's standard
// streams. By that protocol an agent may ask the editor to read and write files and to run commands, and offer it
// commands by which a user logs in: all of that happens outside. So what an agent says is read message by message, and
// only what shows something or asks the user goes on, made anew of what was read. The editor's offers of files and
// terminals are taken out of its greeting, so that an agent uses what is inside.
//
// It trusts the editor, and nothing that an agent says: that is read in a confined process of its own, see [Run].
package acp
