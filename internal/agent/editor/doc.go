// Package editor stands between an agent and an editor that speak over the agent's standard streams: by the Agent
// Client Protocol, or by that of Claude Code's SDK, which its extension for VS Code uses. By these an agent may ask the
// editor to read and write files, to run commands and cells of notebooks, for the user's login, and offer it commands
// by which a user logs in: all of that happens outside. So what an agent says is read message by message, and only what
// shows something or asks the user goes on, made anew of what was read. The editor's offers of files and terminals are
// taken out of its greeting, so that an agent uses what is inside. What does not go on is answered with an error.
//
// It trusts the editor, and nothing that an agent says: that is read in a confined process of its own, see [Run].
package editor
