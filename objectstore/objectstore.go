// Package objectstore is the seam between the kinds that put files into object stores and the packages of the vendors
// that keep them.
//
// A [Store] puts one object. What all of them need is here too: content that is measured before it is sent and sent while
// it is read ([Content], [Reader]), what may be said about an object ([Object.Attributes]), tokens ([Tokens]), and one way
// to tell what a service has refused ([Refusal]).
//
// It knows no vendor and signs nothing. Kinds and packages below integration import it; the program that puts both
// together does too.
package objectstore

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"tandem/credential"
	"tandem/fault"
)

// Store puts objects into the buckets of one service. It is safe for concurrent use.
type Store interface {
	// CredentialType is the type of the credentials that it takes.
	CredentialType() string
	// Put stores an object, in place of any that has its key. It tries once: the caller decides about a repeat,
	// which does no harm. Errors are a *fault.Error, or an *outbound.Error if the service was called.
	Put(ctx context.Context, c credential.Opened, o Object) (Receipt, error)
}

// Object is what is put.
type Object struct {
	// Bucket is what the service calls a bucket or a container.
	Bucket, Key string
	ContentType string
	// Header says more about the object, in the names of HTTP and of the service.
	Header  http.Header
	Content Content
	// Timeout bounds every call of the service; the context bounds all of them.
	Timeout time.Duration
	// Clock tells the time that requests are signed with.
	Clock func() time.Time
}

// Told is what a service says of an object, as JSON: some fields, and besides what headers of its answer say, by the name of a field.
func Told(fields map[string]string, answer http.Header, headers map[string]string) (json.RawMessage, error) {
	for name, header := range headers {
		if value := answer.Get(header); value != "" {
			fields[name] = strings.ToValidUTF8(value, "")
		}
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return nil, fault.New(fault.Internal, "the answer cannot be handed on").WithCause(err)
	}
	return raw, nil
}

// Receipt is what a service says of an object that it has.
type Receipt struct {
	// URL is the address of the object. It lets nobody in.
	URL    string
	Status int
	// SHA256 is that of the content, in lower-case hex.
	SHA256 string
	ETag   string
	// Response is what else the service said, an object.
	Response json.RawMessage
}

// Attributes are what is said about an object.
type Attributes struct {
	ContentType, CacheControl, ContentDisposition, ContentEncoding, ContentLanguage string
	// Meta are the author's own, by name in lower case, without the prefix that the service wants.
	Meta map[string]string
	// Service are the headers that only this service knows.
	Service http.Header
}

// Attributes sorts the headers of an object. Meta is the prefix of the author's own, service are the names that the service
// knows besides. Any other is an error: it would be lost, or change what the call does.
func (o *Object) Attributes(meta string, service ...string) (Attributes, error) {
	a := Attributes{ContentType: o.ContentType, Meta: map[string]string{}, Service: http.Header{}}
	for _, name := range slices.Sorted(maps.Keys(o.Header)) {
		plain, value := textproto.CanonicalMIMEHeaderKey(name), strings.Join(o.Header[name], ", ")
		wrong := func(format string, args ...any) error {
			return fault.Newf(fault.InvalidConfig, format, args...).With("path", "configurations.headers."+name)
		}
		if strings.ContainsFunc(value, func(r rune) bool { return r < 0x20 || r >= 0x7f }) {
			return a, wrong("the header %q can have ASCII characters only; a file name in another script is written as filename*=UTF-8''…", name)
		}
		own, isMeta := strings.CutPrefix(strings.ToLower(name), meta)
		switch {
		case plain == "Content-Type":
			a.ContentType = value
		case plain == "Cache-Control":
			a.CacheControl = value
		case plain == "Content-Disposition":
			a.ContentDisposition = value
		case plain == "Content-Encoding":
			a.ContentEncoding = value
		case plain == "Content-Language":
			a.ContentLanguage = value
		case isMeta && own != "":
			a.Meta[own] = value
		case slices.Contains(service, plain):
			a.Service.Set(plain, value)
		default:
			return a, wrong("the header %q cannot be given to an object; use Content-Type, Cache-Control, Content-Disposition, Content-Encoding, Content-Language or %s…", name, meta)
		}
	}
	return a, nil
}

// maxKey is how many bytes a key may have; all services agree on it.
const maxKey = 1024

// CheckKey refuses keys that no service keeps as they are.
func CheckKey(key string) error {
	wrong := func(text string) error {
		return fault.Newf(fault.InvalidConfig, `"key" %s`, text).With("path", "configurations.key")
	}
	switch {
	case key == "":
		return wrong("is empty; name the object")
	case len(key) > maxKey:
		return wrong("has more than 1024 bytes; shorten it")
	case !utf8.ValidString(key) || strings.ContainsFunc(key, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return wrong("has a control character or a broken one in it")
	}
	for segment := range strings.SplitSeq(key, "/") {
		if segment == "." || segment == ".." {
			return wrong(`has "." or ".." in it as a step; on the way to the service it could name another bucket`)
		}
	}
	return nil
}

// EscapeKey writes a key as a path: everything but letters, digits, "-._~" and the slashes is escaped, as signatures want it.
func EscapeKey(key string) string {
	const digits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String()
}
