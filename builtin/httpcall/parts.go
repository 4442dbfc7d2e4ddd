package httpcall

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"net/url"
	"regexp"
	"strings"

	"tandem/builtin/values"
	"tandem/fault"
	"tandem/node"
	"tandem/node/slot"
	"tandem/outbound"
	"tandem/text"
)

// The parts of an HTTP call: address, query, headers, body. What data brings is escaped where it is put in, and refused
// where escaping could not help.

// urlVariable is {name} or {{name}}.
var urlVariable = regexp.MustCompile(`\{\{?\s*([\pL_][\pL\pN_.-]*)\s*\}?\}`)

// UrlNames is what placeholders in an address find first: the variables, each standing for itself in single braces, so
// that they are all put in, escaped, at one place.
func UrlNames(input json.RawMessage) json.RawMessage {
	own := values.Members(input)
	variables, ok := values.Path{"url_variables"}.Walk(input)
	if !ok || !values.IsObject(variables) {
		return input
	}
	for _, m := range values.Members(variables) {
		own = values.Overlay(own, values.Field(m.Key, "{"+m.Key+"}"))
	}
	return values.Object(own)
}

// address fills the variables in and reads the address. One without a host is taken relative to base.
func address(written string, variables json.RawMessage, base string) (*url.URL, error) {
	invalid := func(format string, args ...any) error {
		return fault.Newf(fault.InvalidConfig, format, args...).With("path", "configurations.url")
	}
	filled, err := fillVariables(strings.TrimSpace(written), variables)
	if err != nil {
		return nil, err
	}
	before, _, _ := strings.Cut(filled, "?")
	if base != "" && !strings.Contains(before, "://") {
		filled = strings.TrimRight(base, "/") + "/" + strings.TrimLeft(filled, "/")
	}
	u, err := url.Parse(filled)
	if err != nil {
		if wrong, ok := err.(*url.Error); ok {
			err = wrong.Err // the address itself may hold what nobody should read
		}
		return nil, invalid(`"url" cannot be read: %w`, err)
	}
	if u.Scheme == "" || u.Host == "" {
		return nil, fault.Say(fault.InvalidConfig, text.Of(`"url" must be an absolute address such as https://host/path`)).With("path", "configurations.url")
	}
	if left := urlVariable.FindStringSubmatch(before); left != nil {
		return nil, slot.Missing([]string{"url_variables." + left[1]}, `nothing fills %q in "url"; set it in url_variables`, left[0]).With("path", "url_variables."+left[1])
	}
	return u, nil
}

func fillVariables(text string, variables json.RawMessage) (string, error) {
	if values.IsNull(variables) {
		return text, nil
	}
	if !values.IsObject(variables) {
		return "", fault.New(fault.InvalidInput, `"url_variables" must be an object`).With("path", "url_variables")
	}
	known := map[string]json.RawMessage{}
	for _, m := range values.Members(variables) {
		known[m.Key] = m.Value
	}
	var problem error
	filled := urlVariable.ReplaceAllStringFunc(text, func(found string) string {
		name := urlVariable.FindStringSubmatch(found)[1]
		raw, ok := known[name]
		if !ok {
			return found
		}
		value, ok := values.Scalar(raw)
		if !ok || value == "" || value == "." || value == ".." {
			problem = fault.Newf(fault.InvalidInput, `"url_variables.%s" must be a text, a number or a boolean that can be part of a path, not %s`, name, values.Short(raw)).With("path", "url_variables."+name)
			return found
		}
		return EscapeAll(value)
	})
	return filled, problem
}

// EscapeAll escapes everything that means something anywhere in an address.
func EscapeAll(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// addQuery adds to the query of an address. What data brings adds names and replaces none.
func addQuery(u *url.URL, fixed node.Object, dynamic json.RawMessage) error {
	var pairs []string
	taken := map[string]bool{}
	for name := range u.Query() {
		taken[name] = true
	}
	add := func(name, value string) { pairs = append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(value)) }
	if err := values.EachText("query_params", json.RawMessage(fixed), fault.InvalidConfig, func(name, value string) {
		taken[name] = true
		add(name, value)
	}); err != nil {
		return err
	}
	if err := values.EachText("dynamic_query_params", dynamic, fault.InvalidInput, func(name, value string) {
		if !taken[name] {
			add(name, value)
		}
	}); err != nil {
		return err
	}
	if len(pairs) > 0 {
		if u.RawQuery != "" {
			u.RawQuery += "&"
		}
		u.RawQuery += strings.Join(pairs, "&")
	}
	return nil
}

// setQuery sets one query parameter and leaves the others as they are.
func setQuery(u *url.URL, name, value string) *url.URL {
	var pairs []string
	if u.RawQuery != "" {
		for pair := range strings.SplitSeq(u.RawQuery, "&") {
			key, _, _ := strings.Cut(pair, "=")
			if plain, err := url.QueryUnescape(key); err == nil && plain == name {
				continue
			}
			pairs = append(pairs, pair)
		}
	}
	out := *u
	out.RawQuery = strings.Join(append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
	return &out
}

// AddHeaders sets headers. What data brings adds names and replaces none.
func AddHeaders(header http.Header, fixed node.Object, dynamic json.RawMessage) error {
	taken := map[string]bool{}
	var problem error
	add := func(code fault.Code, name, value string) {
		one := http.Header{name: []string{value}}
		if err := outbound.CheckHeader(one); err != nil && problem == nil {
			problem = fault.New(code, fault.From(err).Message)
		}
		header.Add(name, value)
	}
	if err := values.EachText("headers", json.RawMessage(fixed), fault.InvalidConfig, func(name, value string) {
		taken[textproto.CanonicalMIMEHeaderKey(name)] = true
		add(fault.InvalidConfig, name, value)
	}); err != nil {
		return err
	}
	if err := values.EachText("dynamic_headers", dynamic, fault.InvalidInput, func(name, value string) {
		if !taken[textproto.CanonicalMIMEHeaderKey(name)] {
			add(fault.InvalidInput, name, value)
		}
	}); err != nil {
		return err
	}
	return problem
}

// bodyOf writes a body and says what it is. A text that is JSON already is sent as it is: templates write JSON as text.
func bodyOf(ctx context.Context, call *node.Call, kind string, raw json.RawMessage) (data []byte, contentType string, err error) {
	if kind == "none" || values.IsNull(raw) {
		return nil, "", nil
	}
	text, isText := "", values.Leading(raw) == '"'
	if isText {
		text, _ = values.Scalar(raw)
	}
	switch kind {
	case Multipart:
		return partsOf(ctx, call, raw)
	case "json":
		if isText {
			if first := values.Leading(json.RawMessage(text)); (first == '{' || first == '[') && json.Valid([]byte(text)) {
				return []byte(text), "application/json", nil
			}
		}
		return raw, "application/json", nil
	case "form":
		const form = "application/x-www-form-urlencoded"
		if isText {
			return []byte(text), form, nil
		}
		var pairs []string
		err := values.EachText("body", raw, fault.InvalidInput, func(name, value string) {
			pairs = append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(value))
		})
		return []byte(strings.Join(pairs, "&")), form, err
	}
	if isText {
		return []byte(text), "text/plain; charset=utf-8", nil
	}
	if values.IsObject(raw) {
		return rawFile(ctx, call, raw)
	}
	if scalar, ok := values.Scalar(raw); ok {
		return []byte(scalar), "text/plain; charset=utf-8", nil
	}
	return nil, "", fault.New(fault.InvalidInput, `"body" must be a text or a file when body_type is "raw"`).With("path", "body")
}

// fileType is the type of a file as a header can have it. What is not a type becomes that of any bytes; parameters that cannot be read are
// left out.
func fileType(written string) string {
	kind, parameters, err := mime.ParseMediaType(written)
	if err != nil {
		parameters = nil
	}
	// Written anew: line breaks between parameters would end a header.
	if clean := mime.FormatMediaType(kind, parameters); strings.Contains(clean, "/") {
		return clean
	}
	return "application/octet-stream"
}

// rawFile reads a file that is sent as a body: a stored one, or one that the value holds itself.
func rawFile(ctx context.Context, call *node.Call, raw json.RawMessage) (data []byte, contentType string, err error) {
	var file struct {
		Blob        string  `json:"blob"`
		Base64      *string `json:"base64"`
		ContentType string  `json:"content_type"`
	}
	wrong := fault.New(fault.InvalidInput, `"body" is not a file; give a text, a file with "blob", or one with "base64"`).With("path", "body")
	if json.Unmarshal(raw, &file) != nil {
		return nil, "", wrong
	}
	contentType = fileType(file.ContentType)
	switch {
	case file.Base64 != nil:
		data, err = base64.StdEncoding.DecodeString(*file.Base64)
		if err != nil {
			return nil, "", fault.New(fault.InvalidInput, `"body.base64" is not base64`).With("path", "body.base64").WithCause(err)
		}
		return data, contentType, nil
	case file.Blob == "":
		return nil, "", wrong
	case call.Files == nil:
		return nil, "", fault.New(fault.Unsupported, "the body is a stored file, and files cannot be read here")
	}
	content, size, err := call.Files.Open(ctx, file.Blob)
	if err != nil {
		return nil, "", err
	}
	if size > outbound.DefaultMaxResponse {
		err = fault.Newf(fault.TooLarge, "the file has %d bytes; at most %d are sent as a body", size, outbound.DefaultMaxResponse)
	} else {
		data, err = io.ReadAll(content)
	}
	if cerr := content.Close(); err == nil && cerr != nil {
		err = cerr
	}
	return data, contentType, err
}
