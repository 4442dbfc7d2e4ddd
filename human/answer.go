package human

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/mail"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"tandem/api"
	"tandem/fault"
	"tandem/node"
	"tandem/payload"
)

// maxFile is how large a file of a form may be.
const maxFile = 10 << 20

// understood is an answer that was found to be one.
type understood struct {
	// data is the answer as the execution gets it, kept the same as it is recorded: files are recorded without their content.
	data, kept json.RawMessage
	// outcome is confirmed, rejected or none.
	outcome string
	// options are what was chosen.
	options []string
	// average is that of a review with numbers.
	average *float64
	// choice is the engine's word for an unknown outcome, raise by how much a budget is raised.
	choice string
	raise  float64
}

// problems collects everything that is wrong with an answer, so that a person hears of it at once.
type problems []api.FaultField

// maxProblems is how many of them anybody reads. An answer can be wrong in more places than there is memory to say so.
const maxProblems = 100

func (p *problems) add(path, format string, args ...any) {
	if len(*p) >= maxProblems {
		return
	}
	*p = append(*p, api.FaultField{Path: path, Message: fmt.Sprintf(format, args...)})
}

// addBoth adds a problem that is told in both languages.
func (p *problems) addBoth(path, english, chinese string) {
	if len(*p) < maxProblems {
		*p = append(*p, api.FaultField{Path: path, Message: english, MessageZH: chinese})
	}
}

// err is one error for all problems; nil when there are none.
func (p problems) err() error {
	if len(p) == 0 {
		return nil
	}
	texts := make([]string, len(p))
	for n, f := range p {
		texts[n] = f.Path + ": " + f.Message
	}
	return fault.New(fault.InvalidInput, strings.Join(texts, "; ")).With("fields", []api.FaultField(p))
}

func wrongAnswer(path, format string, args ...any) error {
	var p problems
	p.add(path, format, args...)
	return p.err()
}

// Check says everything that is wrong with an answer, before anything of it is kept. Whether somebody may give it is another matter.
func (r *Request) Check(purpose string, data json.RawMessage) error {
	_, err := r.read(purpose, data, "somebody", "", Came{}) // by nobody a review would need no evidence
	return err
}

// maxAnswerDepth is how deep an answer may nest: what is recorded of it stands inside a record and must not be too deep with it.
const maxAnswerDepth = payload.MaxDepth - 10

// checkJSON refuses an answer that could not be kept or read again. Nothing at all is told by who reads it.
func checkJSON(field string, raw json.RawMessage) error {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	err := payload.Check(raw, payload.Limits{MaxDepth: maxAnswerDepth, Unique: true})
	if wrong, ok := errors.AsType[*payload.Error](err); ok {
		return wrongAnswer(wrong.Field(field), "%s", wrong.Reason)
	}
	return err
}

// read reads an answer to a question of a purpose.
func (r *Request) read(purpose string, raw json.RawMessage, who, at string, how Came) (understood, error) {
	field := "response_data"
	if purpose != PurposeNode {
		field = "input_data"
	}
	if err := checkJSON(field, raw); err != nil {
		return understood{}, err
	}
	if purpose != PurposeNode {
		return r.readGiven(purpose, raw)
	}
	return r.readAnswer(raw, who, at, how)
}

// readAnswer reads the response_data of a node's question. Who answered, when and how is not theirs to say. By nobody it is a default that stands
// for an answer: a review of that kind needs no evidence.
func (r *Request) readAnswer(raw json.RawMessage, who, at string, how Came) (understood, error) {
	var a Answer
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '{' {
		return understood{}, wrongAnswer("response_data", "an object was expected")
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return understood{}, wrongAnswer(wrongPath(err), "it has the wrong form: %s", plainError(err))
	}
	var found problems
	u := understood{outcome: Confirmed}
	kept := Answer{Notes: a.Notes, UserID: who, Timestamp: at, Came: how}
	var bare map[string]json.RawMessage // field values without the content of files
	switch r.Type {
	case Input:
		kept.Fields, bare = r.readFields(a.Fields, &found)
	case Selection:
		kept.Chosen = r.readChosen(a.Chosen, &found)
		u.options = kept.Chosen
		if len(kept.Chosen) == 1 {
			u.outcome = r.option(kept.Chosen[0]).Outcome
		}
	case Review:
		kept.Scores, kept.Evidence = a.Scores, a.Evidence
		var passed bool
		if passed, u.average = r.readScores(a, who != "", &found); !passed {
			u.outcome = Rejected
		}
	default:
		o := r.option(a.Action)
		switch {
		case a.Action == "":
			found.add("response_data.action", "it is missing; choose one of %s", r.optionNames())
		case o.Value == "":
			found.add("response_data.action", "%q is none of %s", a.Action, r.optionNames())
		}
		kept.Action, u.outcome, u.options = o.Value, o.Outcome, []string{o.Value}
	}
	if err := found.err(); err != nil {
		return u, err
	}
	var err error
	if u.data, err = json.Marshal(kept); err != nil {
		return u, fault.Newf(fault.Internal, "an answer cannot be kept: %w", err)
	}
	if u.kept = u.data; bare == nil {
		return u, nil
	}
	kept.Fields = bare
	if u.kept, err = json.Marshal(kept); err != nil {
		return u, fault.Newf(fault.Internal, "an answer cannot be kept: %w", err)
	}
	return u, nil
}

// wrongPath is where JSON has a value of the wrong type.
func wrongPath(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return "response_data." + wrong.Field
	}
	return "response_data"
}

func plainError(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return "it is a " + wrong.Value
	}
	return err.Error()
}

// option finds an option by its value, in whatever case it is written.
func (r *Request) option(value string) Option {
	for _, o := range r.Options {
		if o.Value == value {
			return o
		}
	}
	for _, o := range r.Options {
		if value != "" && strings.EqualFold(o.Value, value) {
			return o
		}
	}
	return Option{}
}

func (r *Request) optionNames() string {
	return namesOf(r.Options)
}

// maxNamed is how many options are named to somebody who chose none of them.
const maxNamed = 50

func namesOf(options []Option) string {
	var names []string
	for _, o := range options[:min(len(options), maxNamed)] {
		names = append(names, o.Value)
	}
	if len(options) > maxNamed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

func (r *Request) readChosen(chosen []string, found *problems) []string {
	const at = "response_data.selected_values"
	var list []string
	names := r.optionNames()
	known, seen := map[string]string{}, map[string]bool{} // both lists may be long
	for _, o := range slices.Backward(r.Options) {
		known[strings.ToLower(o.Value)] = o.Value
	}
	for _, o := range r.Options { // as it is written goes first
		known[o.Value] = o.Value
	}
	for n, value := range chosen {
		o, ok := known[value]
		if !ok {
			o = known[strings.ToLower(value)]
		}
		switch {
		case o == "":
			found.add(fmt.Sprintf("%s[%d]", at, n), "%q is none of %s", value, names)
		case seen[o]:
			found.add(fmt.Sprintf("%s[%d]", at, n), "%q is chosen twice", o)
		default:
			list, seen[o] = append(list, o), true
		}
	}
	switch {
	case len(chosen) == 0:
		found.add(at, "it is missing; choose %s of %s", map[bool]string{true: "some", false: "one"}[r.AllowMultiple], names)
	case len(chosen) > 1 && !r.AllowMultiple:
		found.add(at, "only one may be chosen, not %d", len(chosen))
	}
	return list
}

// readFields reads the values of a form; bare are the same without the content of files.
func (r *Request) readFields(given map[string]json.RawMessage, found *problems) (values, bare map[string]json.RawMessage) {
	const at = "response_data.field_values"
	values, bare = map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(r.Fields) == 0 {
		r.checkSchema(at, given, found)
		if given == nil {
			return values, bare
		}
		return given, given
	}
	for _, name := range sortedNames(given) {
		if !slices.ContainsFunc(r.Fields, func(f Field) bool { return f.Name == name }) {
			found.add(at+"."+name, "there is no such field")
		}
	}
	for _, f := range r.Fields {
		path := at + "." + f.Name
		raw := bytes.TrimSpace(given[f.Name])
		if isNull(raw) || string(raw) == `""` {
			if f.Required {
				found.add(path, "it is required")
			}
			continue
		}
		before := len(*found)
		value, without := f.read(path, raw, found)
		if len(*found) > before {
			continue
		}
		values[f.Name], bare[f.Name] = value, value
		if without != nil {
			bare[f.Name] = without
		}
	}
	if !isNull(r.Schema) && len(*found) == 0 {
		r.checkSchema(at, values, found)
	}
	return values, bare
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m { // order does not matter: sorted below
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (r *Request) checkSchema(at string, values map[string]json.RawMessage, found *problems) {
	schema, err := node.CompileSchema(r.Schema)
	if err != nil {
		found.add(at, "its schema cannot be used: %s", fault.From(err).Message)
		return
	}
	if values == nil {
		values = map[string]json.RawMessage{}
	}
	var decoded any
	raw, err := json.Marshal(values)
	if err == nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		err = d.Decode(&decoded)
	}
	if err != nil {
		found.add(at, "it cannot be read: %v", err)
		return
	}
	for _, p := range schema.Problems(at, decoded) {
		if p.Rule == "required" && p.Path == at { // it names them all at once, and each has a place of its own
			for _, name := range gjson.GetBytes(r.Schema, "required").Array() {
				if _, given := values[name.String()]; !given {
					found.add(at+"."+name.String(), "it is required")
				}
			}
			continue
		}
		found.addBoth(p.Path, p.Words("en"), p.Words("zh"))
	}
}

// rule is what a field's validation says.
type rule struct {
	Pattern   string   `json:"pattern"`
	Min       *float64 `json:"min"`
	Max       *float64 `json:"max"`
	MinLength *int     `json:"min_length"`
	MaxLength *int     `json:"max_length"`
	Message   string   `json:"message"`

	pattern *regexp.Regexp
}

func readRule(raw json.RawMessage) (rule, error) {
	var v rule
	if isNull(raw) {
		return v, nil
	}
	var err error
	if bytes.TrimSpace(raw)[0] == '"' {
		err = json.Unmarshal(raw, &v.Pattern)
	} else {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		return v, errors.New("it is neither a regular expression nor {pattern, min, max, min_length, max_length, message}")
	}
	if v.Pattern != "" {
		if v.pattern, err = regexp.Compile(v.Pattern); err != nil {
			return v, fmt.Errorf("%q is no regular expression: %w", v.Pattern, err)
		}
	}
	return v, nil
}

// read reads the value of a field. Forms of browsers send texts, so a number or a yes may be one; what is handed on has the right type.
func (f *Field) read(path string, raw json.RawMessage, found *problems) (value, bare json.RawMessage) {
	v, err := readRule(f.Validation)
	if err != nil {
		found.add(path, "its validation cannot be used: %v", err)
		return nil, nil
	}
	if f.Type == "file" {
		return readFile(path, raw, maxFile, found)
	}
	wrong := func(format string, args ...any) { found.add(path, format, args...) }
	text := ""
	isText := json.Unmarshal(raw, &text) == nil
	switch f.Type {
	case "number":
		n, ok := readNumber(raw, text)
		switch {
		case !ok:
			wrong("a number was expected")
		case v.Min != nil && n < *v.Min:
			wrong("%s", cmp.Or(v.Message, fmt.Sprintf("it is less than %g", *v.Min)))
		case v.Max != nil && n > *v.Max:
			wrong("%s", cmp.Or(v.Message, fmt.Sprintf("it is more than %g", *v.Max)))
		case isText:
			raw = json.RawMessage(strings.TrimSpace(text))
			if !json.Valid(raw) { // 007, +1: numbers, but not in JSON
				raw = json.RawMessage(strconv.FormatFloat(n, 'g', -1, 64))
			}
		}
		return raw, nil
	case "boolean":
		switch strings.ToLower(strings.Trim(string(raw), `"`)) {
		case "true", "on", "yes":
			return json.RawMessage("true"), nil
		case "false", "off", "no":
			return json.RawMessage("false"), nil
		}
		wrong("true or false was expected")
		return nil, nil
	}
	if !isText {
		wrong("a text was expected")
		return nil, nil
	}
	switch f.Type {
	case "email":
		if a, err := mail.ParseAddress(text); err != nil || a.Address != strings.TrimSpace(text) {
			wrong("%q is no mail address", text)
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			wrong("%q is no date like 2006-01-02", text)
		}
	case "select":
		if !slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == text }) {
			wrong("%q is none of %s", text, namesOf(f.Options))
		}
	}
	length := utf8.RuneCountInString(text)
	switch {
	case v.pattern != nil && !v.pattern.MatchString(text):
		wrong("%s", cmp.Or(v.Message, fmt.Sprintf("it does not match %q", v.Pattern)))
	case v.MinLength != nil && length < *v.MinLength:
		wrong("%s", cmp.Or(v.Message, fmt.Sprintf("it has less than %d characters", *v.MinLength)))
	case v.MaxLength != nil && length > *v.MaxLength:
		wrong("%s", cmp.Or(v.Message, fmt.Sprintf("it has more than %d characters", *v.MaxLength)))
	}
	return raw, nil
}

// readNumber reads a number, or one in a text.
func readNumber(raw json.RawMessage, text string) (float64, bool) {
	if text == "" {
		text = string(raw)
	}
	text = strings.TrimSpace(text)
	if strings.ContainsAny(text, "xXpP_") { // what only programs write
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsInf(n, 0) && !math.IsNaN(n)
}

// readFile reads a file: its content in base64, or a stored value by its hash. A path in the workspace is none: who fills in a form does not
// choose what is read of it.
func readFile(path string, raw json.RawMessage, most int, found *problems) (value, bare json.RawMessage) {
	var f struct {
		Name        string  `json:"name"`
		ContentType string  `json:"content_type"`
		MediaType   string  `json:"media_type"`
		Base64      *string `json:"base64"`
		Data        *string `json:"data"`
		Blob        string  `json:"blob"`
		Size        int64   `json:"size"`
		SHA256      string  `json:"sha256"`
	}
	if json.Unmarshal(raw, &f) != nil || f.Base64 == nil && f.Data == nil && f.Blob == "" {
		found.add(path, `a file was expected: {"name", "content_type", "base64"}`)
		return nil, nil
	}
	kind := cmp.Or(f.ContentType, f.MediaType)
	if _, _, err := mime.ParseMediaType(kind); err != nil {
		kind = "application/octet-stream"
	}
	file := map[string]any{"name": cmp.Or(baseName(f.Name), "file"), "content_type": kind, "size": f.Size}
	content := cmp.Or(f.Base64, f.Data)
	if content == nil {
		if !hexHash.MatchString(f.Blob) {
			found.add(path+".blob", "%q is no stored value", f.Blob)
			return nil, nil
		}
		file["blob"], file["sha256"] = f.Blob, cmp.Or(f.SHA256, f.Blob)
		value, _ = json.Marshal(file) // texts and a number can always be written
		return value, nil
	}
	if len(*content) > base64.StdEncoding.EncodedLen(most) {
		found.add(path, "the file is larger than %d bytes", most)
		return nil, nil
	}
	data, err := base64.StdEncoding.DecodeString(*content)
	switch {
	case err != nil:
		found.add(path+".base64", "it is no base64")
		return nil, nil
	case len(data) > most:
		found.add(path, "the file is larger than %d bytes", most)
		return nil, nil
	}
	sum := sha256.Sum256(data)
	file["size"], file["sha256"] = len(data), hex.EncodeToString(sum[:])
	bare, _ = json.Marshal(file) // texts and a number can always be written
	file["base64"] = *content
	value, _ = json.Marshal(file)
	return value, bare
}

// baseName is the name of a file without the folders it was in.
func baseName(name string) string {
	name = strings.ReplaceAll(strings.ToValidUTF8(name, ""), `\`, "/")
	name = strings.TrimSpace(name[strings.LastIndexByte(name, '/')+1:])
	if strings.Trim(name, ".") == "" {
		return ""
	}
	return name
}

// readScores reads a review: does it pass, and what are its scores on average, if they are numbers.
func (r *Request) readScores(a Answer, evidence bool, found *problems) (passed bool, average *float64) {
	rules := r.Review
	if rules == nil {
		found.add("response_data.scores", "there is nothing to judge by")
		return false, nil
	}
	for _, name := range sortedNames(a.Scores) {
		if !slices.Contains(rules.Criteria, name) {
			found.add("response_data.scores."+name, "there is no such criterion")
		}
	}
	counts := rules.Scoring == "numeric_scale" || rules.Scoring == "letter_grade" || rules.Scoring == "custom"
	passed = true
	sum := 0.0
	for _, name := range rules.Criteria {
		path := "response_data.scores." + name
		raw := bytes.TrimSpace(a.Scores[name])
		if isNull(raw) {
			found.add(path, "it is required")
			continue
		}
		score, pass, why := rules.score(raw)
		if why != "" {
			found.add(path, "%s", why)
			continue
		}
		sum += score
		passed = passed && pass
	}
	for _, name := range rules.Criteria {
		if evidence && rules.Evidence && strings.TrimSpace(a.Evidence[name]) == "" {
			found.add("response_data.evidence."+name, "it is required: say what the score rests on")
		}
	}
	if !counts || len(*found) > 0 {
		return passed, nil
	}
	mean := sum / float64(len(rules.Criteria))
	return mean >= rules.Threshold, &mean
}

// score reads one score: as a number where scores are counted, else whether it passes.
func (v *ReviewRules) score(raw json.RawMessage) (score float64, pass bool, why string) {
	text := strings.ToUpper(strings.TrimSpace(strings.Trim(string(raw), `"`)))
	yes, no := slices.Contains([]string{"TRUE", "PASS", "PASSED", "YES"}, text), slices.Contains([]string{"FALSE", "FAIL", "FAILED", "NO"}, text)
	number, isNumber := readNumber(raw, strings.Trim(string(raw), `"`))
	letter := float64(map[string]int{"A": 5, "B": 4, "C": 3, "D": 2, "F": 1}[text])
	switch v.Scoring {
	case "numeric_scale":
		if !isNumber || number < v.Min || number > v.Max {
			return 0, false, fmt.Sprintf("a number from %g to %g was expected", v.Min, v.Max)
		}
		return number, true, ""
	case "letter_grade":
		if letter == 0 {
			return 0, false, "A, B, C, D or F was expected"
		}
		return letter, true, ""
	case "custom":
		switch {
		case isNumber && number >= v.Min && number <= v.Max:
			return number, true, ""
		case yes:
			return v.Max, true, ""
		case no:
			return v.Min, true, ""
		case letter != 0:
			return letter, true, ""
		}
		return 0, false, fmt.Sprintf("a number from %g to %g, a letter from A to F, true or false was expected", v.Min, v.Max)
	}
	if !yes && !no {
		return 0, false, "true or false was expected"
	}
	return 0, yes, ""
}
