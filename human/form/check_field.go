package form

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

	"tandem/payload"
	"tandem/text"
)

// MaxFile is how large a file of an answer may be.
const MaxFile = 10 << 20

// Rule is what the validation of a field says.
type Rule struct {
	Pattern   string   `json:"pattern"`
	Min       *float64 `json:"min"`
	Max       *float64 `json:"max"`
	MinLength *int     `json:"min_length"`
	MaxLength *int     `json:"max_length"`
	Message   string   `json:"message"`

	pattern *regexp.Regexp
}

// ReadRule reads the validation of a field.
func ReadRule(raw json.RawMessage) (Rule, error) {
	var v Rule
	if payload.IsNull(raw) {
		return v, nil
	}
	var err error
	if bytes.TrimSpace(raw)[0] == '"' {
		err = json.Unmarshal(raw, &v.Pattern)
	} else {
		err = payload.ReadKnown(raw, &v)
	}
	if err != nil {
		return v, errors.New("it is neither a regular expression nor {pattern, min, max, min_length, max_length, message}")
	}
	if v.Pattern != "" {
		if v.pattern, err = regexp.Compile(v.Pattern); err != nil {
			return v, fmt.Errorf("%q is not a regular expression: %w", v.Pattern, err)
		}
	}
	return v, nil
}

// Fits says what of the rule can never hold for the values of a type of fields; empty: all of it can.
func (v Rule) Fits(typ string) string {
	number, words := typ == "number", slices.Contains([]string{"", "text", "email"}, typ)
	switch {
	case (v.Min != nil || v.Max != nil) && !number:
		return "min and max are for numbers; use min_length and max_length for texts"
	case (v.MinLength != nil || v.MaxLength != nil || v.Pattern != "") && !words:
		return "pattern, min_length and max_length are for texts"
	}
	return ""
}

// or is the author's own message, or a text.
func (v Rule) or(t Text) Text {
	if v.Message != "" {
		return text.As(v.Message)
	}
	return t
}

// readFilled reads the value of a field. Forms of browsers send texts, so a number or a yes may be one; the result has the right type.
func (f *Field) readFilled(path string, raw json.RawMessage, found *Problems) (value, bare json.RawMessage) {
	v, err := ReadRule(f.Validation)
	if err != nil {
		found.addProblem(path, wrongRule.With(err))
		return nil, nil
	}
	if f.Type == "file" {
		return readFile(path, raw, MaxFile, found)
	}
	text := ""
	isText := json.Unmarshal(raw, &text) == nil
	switch f.Type {
	case "number":
		n, ok := readNumber(raw, text)
		switch {
		case !ok:
			found.addProblem(path, wrongNumber)
		case v.Min != nil && n < *v.Min:
			found.addProblem(path, v.or(wrongLess.With(decimal(*v.Min))))
		case v.Max != nil && n > *v.Max:
			found.addProblem(path, v.or(wrongMore.With(decimal(*v.Max))))
		case isText:
			raw, _ = typedNumber(strings.TrimSpace(text)) // it is a number
		}
		return raw, nil
	case "boolean":
		if yes, ok := ticked.decided(strings.Trim(string(raw), `"`)); ok {
			return json.RawMessage(strconv.FormatBool(yes)), nil
		}
		found.addProblem(path, wrongYesNo)
		return nil, nil
	}
	if !isText {
		found.addProblem(path, wrongText)
		return nil, nil
	}
	f.checkText(path, text, found)
	v.checkText(path, text, found)
	return raw, nil
}

// checkText checks what the type of a field says of a text.
func (f *Field) checkText(path, text string, found *Problems) {
	switch f.Type {
	case "email":
		if a, err := mail.ParseAddress(text); err != nil || a.Address != strings.TrimSpace(text) {
			found.addProblem(path, wrongMail.With(text))
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			found.addProblem(path, wrongDate.With(text))
		}
	case "select":
		if !slices.ContainsFunc(f.Options, func(o Option) bool { return o.Value == text }) {
			found.addProblem(path, wrongNoneOf.With(text, namesOf(f.Options)))
		}
	}
}

// checkText checks what the author's rule says of a text.
func (v Rule) checkText(path, text string, found *Problems) {
	length := utf8.RuneCountInString(text)
	switch {
	case v.pattern != nil && !v.pattern.MatchString(text):
		found.addProblem(path, v.or(wrongPattern.With(v.Pattern)))
	case v.MinLength != nil && length < *v.MinLength:
		found.addProblem(path, v.or(wrongShort.With(*v.MinLength)))
	case v.MaxLength != nil && length > *v.MaxLength:
		found.addProblem(path, v.or(wrongLong.With(*v.MaxLength)))
	}
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

// storedHash is what the hash of a stored value looks like.
var storedHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// readFile reads a file: its content in base64, or a stored value by its hash. A path in the workspace is not taken: a person who
// fills in a form does not choose what is read of it.
func readFile(path string, raw json.RawMessage, most int, found *Problems) (value, bare json.RawMessage) {
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
		found.addProblem(path, wrongFile)
		return nil, nil
	}
	kind := cmp.Or(f.ContentType, f.MediaType)
	if _, _, err := mime.ParseMediaType(kind); err != nil {
		kind = "application/octet-stream"
	}
	file := map[string]any{"name": cmp.Or(baseName(f.Name), "file"), "content_type": kind, "size": f.Size}
	content := cmp.Or(f.Base64, f.Data)
	if content == nil {
		if !storedHash.MatchString(f.Blob) {
			found.addProblem(path+".blob", wrongStored.With(f.Blob))
			return nil, nil
		}
		file["blob"], file["sha256"] = f.Blob, cmp.Or(f.SHA256, f.Blob)
		value, _ = json.Marshal(file) // texts and a number can always be written
		return value, nil
	}
	if len(*content) > base64.StdEncoding.EncodedLen(most) {
		found.addProblem(path, wrongFileSize.With(most))
		return nil, nil
	}
	data, err := base64.StdEncoding.DecodeString(*content)
	switch {
	case err != nil:
		found.addProblem(path+".base64", wrongBase64)
		return nil, nil
	case len(data) > most:
		found.addProblem(path, wrongFileSize.With(most))
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
