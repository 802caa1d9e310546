// Package git says what the host's git obeys in a git folder, and what of it
// may stay when an agent had the folder.
//
// A git place is a folder or file that git takes for a repository or a pointer
// to one. [Gather] looks at all places below a folder, before a session and
// after it, by the same rules. [Review] compares the two and gives the repairs;
// it is a function of values. [Mender] applies them.
//
// The rule is default deny. A name in a git folder stays if it was there before
// and is the same file still, or if the table knows it and its content obeys
// its grammar. All else goes aside: what is not in the table, too. What an agent
// made is judged like what was the user's, with nothing there before.
//
// It imports beneath, gitconfig and survey, and runs no git: that would obey
// what is to be taken out.
package git
