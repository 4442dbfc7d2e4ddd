package console

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tandem/api"
	"tandem/console/table"
	"tandem/fault"
	"tandem/human"
	"tandem/human/form"
	"tandem/payload"
)

// question is what somebody is asked, with the form that an answer fills in. Prompts on a terminal and flags fill in the same entries;
// whether the answer is right is for the server to say.
type question struct {
	api.Interaction
	request human.Request
	task    taskAsked
	asked   form.Question
	form    *form.Form
}

// taskAsked is what the question of a task says besides: which tool is to be called, why that is risky, and what it lacks. Params are all
// parameters of the tool, null for those that are missing.
type taskAsked struct {
	Tool    string                     `json:"tool"`
	Reason  string                     `json:"reason"`
	Warning string                     `json:"warning"`
	Message string                     `json:"message"`
	Params  map[string]json.RawMessage `json:"params"`
}

// toolChanges are how tools differ from what was accepted, when that is what the question is about.
func (q *question) toolChanges() []api.MCPChange {
	var content struct {
		Changes []api.MCPChange `json:"changes"`
	}
	if q.Purpose != human.PurposeDrift || json.Unmarshal(q.request.Content, &content) != nil {
		return nil // it is shown as it is
	}
	return content.Changes
}

// newQuestion takes a question apart for a reader of a language.
func newQuestion(i api.Interaction, language string) (*question, error) {
	q := &question{Interaction: i}
	if err := json.Unmarshal(i.RequestData, &q.request); err != nil {
		return nil, fault.Newf(fault.Unsupported, "question %q cannot be read by this program; a newer one may: %w", i.ID, err)
	}
	if json.Unmarshal(i.RequestData, &q.task) != nil {
		q.task = taskAsked{} // another part's, which has fields of these names for something else
	}
	r := &q.request
	q.asked = form.Question{
		Purpose: i.Purpose, Type: i.InteractionType, Options: r.Options, Multiple: r.AllowMultiple, Fields: r.Fields, Schema: r.Schema,
		Review: r.Review, Params: q.task.Params,
	}
	q.form = form.New(q.asked, language)
	return q, nil
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// plain is a JSON value as people write it: a text without its quotes.
func plain(raw json.RawMessage) string {
	return payload.Text(raw)
}

// readTyped makes a value of what somebody has typed for an entry: a file is named by its path, a choice may be by its number. The error
// says what was expected.
func readTyped(e *form.Entry, language, text string) (json.RawMessage, error) {
	if e.Kind == form.File {
		return readUpload(strings.TrimPrefix(text, "@"))
	}
	value, wrong := e.Read(text)
	if wrong != nil && e.Chosen() {
		if names, ok := byNumbers(e, text); ok {
			value, wrong = e.Choose(names...)
		}
	}
	if wrong != nil {
		return nil, errors.New(wrong.In(language))
	}
	return value, nil
}

// byNumbers are the values of choices that are named by their numbers or otherwise, where that cannot be meant in another way.
func byNumbers(e *form.Entry, text string) ([]string, bool) {
	if !numbered(e) {
		return nil, false
	}
	parts := []string{text}
	if e.Kind == form.Some {
		parts = strings.Split(text, ",")
	}
	some := false
	for i, part := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil {
			continue // by its name
		}
		if n < 1 || n > len(e.Choices) {
			return nil, false
		}
		parts[i], some = e.Choices[n-1].Value, true
	}
	return parts, some
}

// numbered says that choices may be named by their number: none of them is a number itself.
func numbered(e *form.Entry) bool {
	return !slices.ContainsFunc(e.Choices, func(c form.Choice) bool {
		_, value := strconv.Atoi(c.Value)
		_, label := strconv.Atoi(c.Label)
		return value == nil || label == nil
	})
}

// maxUpload is how large a file of an answer may be; the server takes no larger one either.
const maxUpload = form.MaxFile

// readUpload reads a file of this machine for a field of a form.
func readUpload(path string) (json.RawMessage, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("a file was expected: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxUpload+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("a file was expected: %w", err)
	case len(data) > maxUpload:
		return nil, fmt.Errorf("%q has more than %d MiB", path, maxUpload>>20)
	}
	return json.Marshal(map[string]string{
		"name": filepath.Base(path), "content_type": cmp.Or(mime.TypeByExtension(filepath.Ext(path)), http.DetectContentType(data)),
		"base64": base64.StdEncoding.EncodeToString(data),
	})
}

// blamed are the entries that problems are about; all when they are about none in particular.
func (q *question) blamed(problems []api.FaultField) []int {
	var list []int
	for n := range q.form.Entries {
		path := q.form.Entries[n].Path()
		about := func(p api.FaultField) bool {
			_, at, _ := strings.Cut(p.Path, ".") // after response_data or input_data
			return at == "" || at == path || strings.HasPrefix(at, path+".") || strings.HasPrefix(at, path+"[") ||
				strings.HasPrefix(path, at+".")
		}
		if slices.ContainsFunc(problems, about) {
			list = append(list, n)
		}
	}
	if len(list) == 0 {
		for n := range q.form.Entries {
			list = append(list, n)
		}
	}
	return list
}

// remarks says that an entry is what somebody may say besides.
func remarks(e *form.Entry) bool {
	return e.Group == "" && (e.Name == form.NameNotes || e.Name == form.NameDescription)
}

// title is what a question is called.
func (q *question) title() string {
	first, _, _ := strings.Cut(strings.TrimSpace(q.request.Description), "\n")
	return table.OneLine(cmp.Or(q.request.Title, first, q.Purpose))
}
