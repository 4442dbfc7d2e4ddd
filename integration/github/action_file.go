package github

import (
	"crypto/sha1" // #nosec G505 -- it names contents as git does, and protects nothing
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"tandem/builtin/fileref"
	"tandem/builtin/rest"
	"tandem/fault"
)

// Files of a repository are read and written one by one, each write a commit.

// contents is where a file is.
func (a *acting) contents() string {
	where := a.repo + "/contents"
	for part := range strings.SplitSeq(strings.Trim(a.cfg.Path, "/"), "/") {
		where += rest.Path(part)
	}
	return where
}

// present is what the file is now on the branch that is written to.
func (a *acting) present() (rest.Answer, error) {
	return a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.contents(), Query: url.Values{"ref": {a.cfg.Branch}}, Fields: []string{"sha"}})
}

// same says that the file has the content already: git names a content by its hash.
func (a *acting) same(file rest.Answer) bool {
	sum := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(a.cfg.Content), a.cfg.Content))) // #nosec G401 -- see above
	return file.Get("sha").Str == hex.EncodeToString(sum[:])
}

func (a *acting) write(sha string) (actionResult, error) {
	body := rest.Fields{"message": a.cfg.CommitMessage, "content": encoded(a.cfg.Content), "branch": a.cfg.Branch}.Text("sha", sha)
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "PUT", Path: a.contents(), Body: body, Fields: []string{"content.sha"}})
	return file(answer, "content."), err
}

// file is the result of an answer that has a file, below a path.
func file(answer rest.Answer, at string) actionResult {
	out := actionResult{Response: answer.Raw()}
	out.ResourceID, out.ResourceURL, out.RateLimit = answer.Get(at+"sha").Str, answer.Get(at+"html_url").Str, answer.Limits()
	return out
}

// createFile writes a file that is not there yet. GitHub refuses to replace one without its hash; the same content there is what was to be
// done.
func (a *acting) createFile() (actionResult, error) {
	out, err := a.write("")
	if code := rest.Status(err); code != 422 && code != 409 {
		return out, err
	}
	now, lerr := a.present()
	switch {
	case lerr != nil:
		return actionResult{}, err
	case a.same(now):
		return file(now, ""), nil
	}
	return actionResult{}, fault.Newf(fault.Conflict, "%s is there already on %s, with another content; use update_file", a.cfg.Path, a.cfg.Branch).
		With("path", "path")
}

// updateFile replaces the content that the file has now. When somebody else has written it meanwhile, GitHub refuses.
func (a *acting) updateFile() (actionResult, error) {
	now, err := a.present()
	if err != nil {
		return actionResult{}, err
	}
	if a.same(now) {
		return file(now, ""), nil
	}
	return a.write(now.Get("sha").Str)
}

// readFile reads a file, or lists what is in a directory.
func (a *acting) readFile() (actionResult, error) {
	query := url.Values{}
	if a.cfg.Ref != "" {
		query.Set("ref", a.cfg.Ref)
	}
	answer, err := a.api.Do(a.ctx, rest.Call{Method: "GET", Path: a.contents(), Query: query, Wants: rest.Structure})
	if err != nil {
		return actionResult{}, err
	}
	if answer.Get("@this").IsArray() {
		out := actionResult{Response: json.RawMessage("null")}
		out.Items, out.RateLimit = rest.Items(answer.Get("@this")), answer.Limits()
		return out, nil
	}
	out := file(answer, "")
	if answer.Get("encoding").Str != "base64" {
		return out, fault.Newf(fault.TooLarge, "%s is too large for GitHub to hand out its content (%d bytes)", a.cfg.Path, answer.Get("size").Int())
	}
	out.Content, out.File, err = fileref.Decoded(a.ctx, a.call, answer.Get("content").Str, a.cfg.Path)
	return out, err
}
