package broker

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Path is a path at a host, with the methods that are allowed. In place of a part * stands for a name, % for one or
// more names with encoded slashes between, @* for two of which the first begins with @, and ** for one or more parts;
// a|b is a or b, and *:a|b a name with :a or :b behind it.
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
	if verbs, is := strings.CutPrefix(want, "*:"); is {
		name, verb, _ := strings.Cut(part, ":")
		return isName(name) && slices.Contains(strings.Split(verbs, "|"), verb)
	}
	return slices.Contains(strings.Split(want, "|"), part)
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
		list = append(list, ParsePath(text))
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

// writing lists, by the end of a host's name, where an agent may write. The longest end counts. Below a path that ends
// in "/" a host has nothing that changes who may do what: where it has, the single paths are named. POST alone is never
// asked for, because some hosts take another method from a form (_method).
var writing = map[string][]string{
	"anthropic.com": nil, "claude.com": nil, // but for ClaudeHosts
	"api.anthropic.com": nil, "console.anthropic.com": nil, "mcp-proxy.anthropic.com": nil, "platform.claude.com": nil,
	"github.com": gitPaths,
	"api.github.com": {
		"/graphql", "/markdown", "/markdown/raw", "/gists|notifications/", "/user/repos", "/orgs/*/repos",
		"/user/starred/",
		"/repos/*/*/issues|comments|contents|git|releases|labels|milestones|statuses|commits|deployments|discussions/",
		"/repos/*/*/merges|merge-upstream|forks|topics|subscription|dispatches|generate",
		"/repos/*/*/pulls", "/repos/*/*/pulls/*", "/repos/*/*/pulls/comments/*/reactions/",
		"/repos/*/*/pulls/*/comments|reviews|merge|update-branch|requested_reviewers/",
		"/repos/*/*/check-runs", "/repos/*/*/check-suites", "PATCH /repos/*/*/check-runs/*",
		"/repos/*/*/check-runs|check-suites/*/rerequest", "DELETE /repos/*/*/actions/runs/*",
		"/repos/*/*/actions/runs/*/rerun|rerun-failed-jobs|cancel|force-cancel|logs",
		"/repos/*/*/actions/jobs/*/rerun", "/repos/*/*/actions/workflows/*/dispatches",
		"/repos/*/*/actions/artifacts|caches/", "/repos/*/*/code-scanning/alerts|analyses|sarifs/",
		"/repos/*/*/dependabot/alerts/", "/repos/*/*/dependency-graph/snapshots",
	},
	"uploads.github.com": {"/repos/*/*/releases/*/assets"},
	"gitlab.com": append([]string{
		"/api/graphql", "/api/v4/markdown", "/api/v4/projects", "/api/v4/snippets|todos/",
		"/api/v4/projects/%/issues|labels|milestones|releases|pipelines|jobs|snippets|wikis|statuses/",
		"/api/v4/projects/%/pipeline|uploads|fork|star|unstar", "/api/v4/projects/%/ci/lint", "/api/v4/ci/lint",
		"/api/v4/projects/%/merge_requests", "/api/v4/projects/%/merge_requests/*",
		"/api/v4/projects/%/merge_requests/*/notes|discussions|draft_notes|award_emoji|context_commits|pipelines/",
		"/api/v4/projects/%/merge_requests/*/merge|rebase|cancel_merge_when_pipeline_succeeds|approve|unapprove",
		"/api/v4/projects/%/merge_requests/*/subscribe|unsubscribe|todo|time_estimate|reset_time_estimate",
		"/api/v4/projects/%/merge_requests/*/add_spent_time|reset_spent_time",
		"/api/v4/projects/%/repository/branches|tags|merged_branches|changelog",
		"/api/v4/projects/%/repository/commits/",
		"/api/v4/projects/%/repository/files|tags|submodules/%", "DELETE /api/v4/projects/%/repository/branches/%",
		"/api/v4/projects/%/packages/composer", "DELETE /api/v4/projects/%/packages/*",
		"DELETE /api/v4/projects/%/packages/*/package_files/*", "/api/v4/projects/%/packages/npm/%",
		"/api/v4/projects/%/packages/cargo|conan|debian|generic|go|helm|maven|ml_models|npm|nuget|pypi|rpm/",
		"/api/v4/projects/%/packages/rubygems|terraform/", "/api/v4/groups/%/labels|milestones|epics/",
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
		"/*/publishers/*/models/" + asking, "/*/projects/*/locations/*/publishers/*/models/" + asking,
		"/*/projects/*/locations/*/endpoints/" + asking, "/*/projects/*/locations/*/endpoints/*/chat/completions",
		"/*/projects/*/locations/*/cachedContents/",
	},
	"huggingface.co": append([]string{
		"/api/repos/create", "/api/validate-yaml",
		"/api/models|datasets|spaces/*/*/commit|preupload|paths-info|branch|tag|discussions/",
	}, gitPaths...),
	"router.huggingface.co":        {"/v1/", "/*/v1/", "/hf-inference/models/"},
	"api-inference.huggingface.co": {"/models/"},
	"registry.npmjs.org": {
		"PUT /*", "PUT /@*", "/-/package/*/dist-tags/", "/-/package/@*/dist-tags/", "/-/npm/v1/security/",
	},
	"npmjs.org": nil, "npmjs.com": nil,
	"pypi.org": nil, "upload.pypi.org": {"/legacy/"}, "test.pypi.org": {"/legacy/"},
	"openrouter.ai": {
		"/api/v1/chat/completions", "/api/v1/completions", "/api/v1/messages/", "/api/v1/responses/",
		"/api/v1/embeddings", "/api/v1/rerank", "/api/v1/audio/", "/api/v1/images/",
	},
}

// asking are the verbs by which models are asked. Others change rights (setIamPolicy), or what runs.
const asking = "*:generateContent|streamGenerateContent|countTokens|computeTokens|predict|predictLongRunning|" +
	"fetchPredictOperation|rawPredict|streamRawPredict|serverStreamingPredict|embedContent|batchEmbedContents"

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
		"linkProjectV2ToRepository", "lockLockable", "markDiscussionCommentAsAnswer",
		"markFileAsViewed", "markProjectV2AsTemplate", "markPullRequestReadyForReview", "mergeBranch",
		"mergePullRequest", "enqueuePullRequest", "dequeuePullRequest", "minimizeComment", "pinIssue",
		"removeAssigneesFromAssignable", "removeLabelsFromLabelable", "removeReaction", "removeStar", "removeSubIssue",
		"reopenDiscussion", "reopenIssue", "reopenPullRequest", "replaceActorsForAssignable", "reprioritizeSubIssue",
		"requestReviews", "requestReviewsByLogin", "resolveReviewThread", "revertPullRequest",
		"submitPullRequestReview", "transferIssue", "unarchiveProjectV2Item", "unlinkProjectV2FromRepository",
		"unlockLockable", "unmarkFileAsViewed", "unmarkProjectV2AsTemplate",
		"unminimizeComment", "unpinIssue", "unresolveReviewThread", "updateDiscussion", "updateDiscussionComment",
		"updateIssue", "updateIssueComment", "updateLabel", "updateProjectV2DraftIssue",
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
