// Package branch keeps the checkouts of sessions on a branch.
//
// A session on a branch works on a checkout of its own, at the project's path inside. Nothing of it is in the user's
// folder. Its git folder is an inner one ([handover.Place.Branch]), from which branches cross.
//
//	branches/<project>/<branch>/
//	    record.json    what is durable: the branch, and what was done of its checkout
//	    git/           the inner git folder's place
//	    closed/        mode 0, held by a descriptor: prompts, editors and indexers of the user's do not get in
//	        home/      the agent's conversations
//	        tree/      the checkout
//	        layers/    of ignored folders of the user's that are seen below
//
// The agent has written all that is in tree and in layers, in earlier sessions. It is opened by descriptors beneath
// them, and no link is followed. git works there in a box only.
package branch
