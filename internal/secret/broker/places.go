package broker

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Path is a path at a host, with the methods that are allowed. In place of a part * stands for a name, % for one or
// more names with encoded slashes between, @* for two of which the first begins with @, and ** for one or more parts.
type Path struct {
	Methods []string `json:"methods,omitempty"` // none: any
	Path    string   `json:"path"`              // if it ends in "/", everything below is included
}

// ParsePath reads a path as a profile has it: PATH, or METHOD PATH.
func ParsePath(text string) Path {
	if method, path, two := strings.Cut(text, " "); two {
		return Path{Methods: []string{method}, Path: path}
	}
	return Path{Path: text}
}

// Admits reports whether a request is for this path, as it stands in the request. A request whose path can be read in
// two ways is for none.
func (p Path) Admits(method, escapedPath string) bool {
	if len(p.Methods) > 0 && !slices.Contains(p.Methods, method) {
		return false
	}
	want, ok := strings.CutPrefix(p.Path, "/")
	have, rooted := strings.CutPrefix(escapedPath, "/")
	return ok && rooted && matches(strings.Split(want, "/"), strings.Split(have, "/"))
}

func matches(want, have []string) bool {
	for i, part := range want {
		switch {
		case part == "" && i == len(want)-1: // all below, and the place itself
			below := have[min(i, len(have)):]
			if last := len(below) - 1; last >= 0 && below[last] == "" {
				below = below[:last]
			}
			return len(have) >= i && !slices.ContainsFunc(below, func(s string) bool { return !isName(s) })
		case len(have) <= i:
			return false
		case part == "**":
			for end := i + 1; end <= len(have) && isName(have[end-1]); end++ {
				if matches(want[i+1:], have[end:]) {
					return true
				}
			}
			return false
		case !isPart(part, have[i]):
			return false
		}
	}
	return len(have) == len(want)
}

func isPart(want, part string) bool {
	switch want {
	case "*":
		return isName(part)
	case "%":
		return areNames(part)
	case "@*":
		return strings.HasPrefix(part, "@") && areNames(part) && strings.Count(strings.ToUpper(part), "%2F") == 1
	}
	return part == want
}

// areNames reports whether a part of a path is of names with encoded slashes between.
func areNames(part string) bool {
	for name := range strings.SplitSeq(strings.ReplaceAll(part, "%2f", "%2F"), "%2F") {
		if !isName(name) {
			return false
		}
	}
	return true
}

// isName reports whether a part of a path can be read in one way only. What is encoded in it may be a blank or a
// letter of another alphabet.
func isName(part string) bool {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~@:+,=$!()&"
	decoded, err := url.PathUnescape(part)
	if err != nil || !utf8.ValidString(decoded) || strings.Trim(part, ".") == "" {
		return false
	}
	for i := 0; i < len(part); i++ {
		switch {
		case strings.IndexByte(plain, part[i]) >= 0:
		case strings.HasPrefix(part[i:], "%20"), part[i] == '%' && strings.IndexByte("89abcdefABCDEF", part[i+1]) >= 0:
			i += 2
		default:
			return false
		}
	}
	return true
}

// Writing returns the paths at a host for which a placeholder can be used in requests that do not only read, and
// whether the host is known. At hosts that are known an agent can write where the work on code needs it, and nowhere
// else: so it makes no keys or tokens, ends none, and lets nobody in.
func Writing(host string) (list []Path, known bool) {
	domain := domainOf(host)
	for _, text := range writing[domain] {
		list = append(list, Path{Path: text})
	}
	if slices.Contains(ClaudeHosts, domain) {
		list = ClaudePaths
	}
	return list, domain != ""
}

// domainOf returns the longest of the ends of a host's name in [writing]; empty: there is none.
func domainOf(host string) (longest string) {
	for domain := range writing {
		rest, is := strings.CutSuffix(host, domain)
		if is && (rest == "" || rest[len(rest)-1] == '.' || rest[len(rest)-1] == '-') && len(domain) > len(longest) {
			longest = domain
		}
	}
	return longest
}

// GraphQL returns the names of the mutations that a placeholder can be used for at a path of GraphQL, and whether the
// path is one. What a request does there stands in its body.
func GraphQL(host, escapedPath string) (mutations []string, is bool) {
	mutations, is = graphQL[domainOf(host)+escapedPath]
	return mutations, is
}

// writing lists, by the end of a host's name, where an agent may write. The longest end counts.
var writing = map[string][]string{
	"anthropic.com": nil, "claude.com": nil, // but for ClaudeHosts
	"api.anthropic.com": nil, "console.anthropic.com": nil, "mcp-proxy.anthropic.com": nil, "platform.claude.com": nil,
	"github.com": gitPaths,
	"api.github.com": {
		"/graphql", "/markdown", "/markdown/raw", "/gists/", "/notifications/", "/user/repos", "/orgs/*/repos",
		"/user/starred/", "/repos/*/*/issues/", "/repos/*/*/pulls/", "/repos/*/*/comments/", "/repos/*/*/contents/",
		"/repos/*/*/git/", "/repos/*/*/merges", "/repos/*/*/merge-upstream", "/repos/*/*/releases/",
		"/repos/*/*/labels/", "/repos/*/*/milestones/", "/repos/*/*/statuses/", "/repos/*/*/check-runs/",
		"/repos/*/*/check-suites/", "/repos/*/*/commits/", "/repos/*/*/deployments/", "/repos/*/*/actions/runs/",
		"/repos/*/*/actions/jobs/", "/repos/*/*/actions/workflows/", "/repos/*/*/actions/artifacts/",
		"/repos/*/*/actions/caches/", "/repos/*/*/forks", "/repos/*/*/topics", "/repos/*/*/subscription",
		"/repos/*/*/dispatches", "/repos/*/*/discussions/", "/repos/*/*/code-scanning/",
		"/repos/*/*/dependabot/alerts/",
		"/repos/*/*/generate", "/repos/*/*/dependency-graph/snapshots",
	},
	"uploads.github.com": {"/repos/*/*/releases/*/assets"},
	"gitlab.com": append([]string{
		"/api/graphql", "/api/v4/markdown", "/api/v4/projects", "/api/v4/snippets/", "/api/v4/todos/",
		"/api/v4/projects/%/issues/", "/api/v4/projects/%/merge_requests/", "/api/v4/projects/%/repository/",
		"/api/v4/projects/%/labels/", "/api/v4/projects/%/milestones/", "/api/v4/projects/%/releases/",
		"/api/v4/projects/%/pipeline", "/api/v4/projects/%/pipelines/", "/api/v4/projects/%/jobs/",
		"/api/v4/projects/%/snippets/", "/api/v4/projects/%/wikis/", "/api/v4/projects/%/uploads",
		"/api/v4/projects/%/statuses/", "/api/v4/projects/%/packages/", "/api/v4/projects/%/fork",
		"/api/v4/projects/%/star", "/api/v4/projects/%/unstar", "/api/v4/projects/%/ci/lint", "/api/v4/ci/lint",
		"/api/v4/groups/%/labels/", "/api/v4/groups/%/milestones/", "/api/v4/groups/%/epics/",
	}, gitPaths...),
	"openai.com": {
		"/v1/responses/", "/v1/chat/completions/", "/v1/completions", "/v1/embeddings", "/v1/images/", "/v1/audio/",
		"/v1/moderations", "/v1/files/", "/v1/uploads/", "/v1/batches/", "/v1/assistants/", "/v1/threads/",
		"/v1/vector_stores/", "/v1/fine_tuning/jobs/", "/v1/conversations/", "/v1/containers/", "/v1/evals/",
		"/v1/videos/",
	},
	"generativelanguage.googleapis.com": {
		"/*/models/", "/*/files/", "/*/cachedContents/", "/*/batches/", "/*/interactions/", "/*/fileSearchStores/",
		"/upload/*/files", "/upload/*/fileSearchStores/", "/*/openai/chat/completions", "/*/openai/embeddings",
		"/*/openai/images/generations",
	},
	"aiplatform.googleapis.com": {
		"/*/publishers/*/models/", "/*/projects/*/locations/*/publishers/*/models/",
		"/*/projects/*/locations/*/cachedContents/", "/*/projects/*/locations/*/endpoints/",
	},
	"huggingface.co": append([]string{
		"/api/repos/create", "/api/validate-yaml", "/api/*/*/*/commit/", "/api/*/*/*/preupload/",
		"/api/*/*/*/paths-info/", "/api/*/*/*/branch/", "/api/*/*/*/tag/", "/api/*/*/*/discussions/",
	}, gitPaths...),
	"router.huggingface.co":        {"/v1/", "/*/v1/", "/hf-inference/models/"},
	"api-inference.huggingface.co": {"/models/"},
	"registry.npmjs.org": {
		"/*", "/@*", "/*/-rev/*", "/@*/-rev/*", "/*/-/*/-rev/*", "/@*/-/*/-rev/*",
		"/-/package/*/dist-tags/", "/-/package/@*/dist-tags/", "/-/npm/v1/security/",
	},
	"npmjs.org": nil, "npmjs.com": nil,
	"pypi.org": nil, "upload.pypi.org": {"/legacy/"}, "test.pypi.org": {"/legacy/"},
	"openrouter.ai": {
		"/api/v1/chat/completions", "/api/v1/completions", "/api/v1/messages/", "/api/v1/responses/",
		"/api/v1/embeddings", "/api/v1/rerank", "/api/v1/audio/", "/api/v1/images/",
	},
}

// gitPaths are those by which git and git-lfs fetch and push.
var gitPaths = []string{"/**/git-upload-pack", "/**/git-receive-pack", "/**/info/lfs/"}

var graphQL = map[string][]string{
	"api.github.com/graphql": {
		"addAssigneesToAssignable", "addComment", "addDiscussionComment", "addLabelsToLabelable",
		"addProjectV2DraftIssue", "addProjectV2ItemById", "addPullRequestReview", "addPullRequestReviewComment",
		"addPullRequestReviewThread", "addPullRequestReviewThreadReply", "addReaction", "addStar", "addSubIssue",
		"archiveProjectV2Item", "clearLabelsFromLabelable", "clearProjectV2ItemFieldValue", "cloneTemplateRepository",
		"closeDiscussion", "closeIssue", "closePullRequest", "convertProjectV2DraftIssueItemToIssue",
		"convertPullRequestToDraft", "copyProjectV2", "createCommitOnBranch", "createDiscussion", "createIssue",
		"createLabel", "createLinkedBranch", "createProjectV2", "createProjectV2Field", "createPullRequest",
		"createRef", "createRepository", "deleteDiscussion", "deleteDiscussionComment", "deleteIssue",
		"deleteIssueComment", "deleteLabel", "deleteLinkedBranch", "deleteProjectV2", "deleteProjectV2Field",
		"deleteProjectV2Item", "deletePullRequestReview", "deletePullRequestReviewComment", "deleteRef",
		"disablePullRequestAutoMerge", "dismissPullRequestReview", "enablePullRequestAutoMerge",
		"linkProjectV2ToRepository", "linkProjectV2ToTeam", "lockLockable", "markDiscussionCommentAsAnswer",
		"markFileAsViewed", "markProjectV2AsTemplate", "markPullRequestReadyForReview", "mergeBranch",
		"mergePullRequest", "enqueuePullRequest", "dequeuePullRequest", "minimizeComment", "pinIssue",
		"removeAssigneesFromAssignable", "removeLabelsFromLabelable", "removeReaction", "removeStar", "removeSubIssue",
		"reopenDiscussion", "reopenIssue", "reopenPullRequest", "replaceActorsForAssignable", "reprioritizeSubIssue",
		"requestReviews", "requestReviewsByLogin", "resolveReviewThread", "revertPullRequest",
		"submitPullRequestReview", "transferIssue", "unarchiveProjectV2Item", "unlinkProjectV2FromRepository",
		"unlinkProjectV2FromTeam", "unlockLockable", "unmarkFileAsViewed", "unmarkProjectV2AsTemplate",
		"unminimizeComment", "unpinIssue", "unresolveReviewThread", "updateDiscussion", "updateDiscussionComment",
		"updateIssue", "updateIssueComment", "updateLabel", "updateProjectV2", "updateProjectV2DraftIssue",
		"updateProjectV2Field", "updateProjectV2ItemFieldValue", "updateProjectV2ItemPosition", "updatePullRequest",
		"updatePullRequestBranch", "updatePullRequestReview", "updatePullRequestReviewComment", "updateRef",
		"updateRefs",
	},
	"gitlab.com/api/graphql": {
		"awardEmojiAdd", "awardEmojiRemove", "awardEmojiToggle", "createDiffNote", "createDiscussion", "createIssue",
		"createNote", "destroyNote", "discussionToggleResolve", "issueSetAssignees", "issueSetDueDate",
		"mergeRequestAccept",
		"mergeRequestCreate", "mergeRequestSetAssignees", "mergeRequestSetDraft", "mergeRequestSetLabels",
		"mergeRequestSetMilestone", "mergeRequestSetReviewers", "mergeRequestUpdate", "updateIssue", "updateNote",
		"workItemCreate", "workItemUpdate",
	},
}
