package aws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"tandem/objectstore"
)

// signer makes signatures of version 4, for one service in one region.
type signer struct {
	keys
	service string
}

// sign returns the headers that authenticate a call: its own headers, the host, the time and the sum of the body are
// covered. Whatever is added to the call later is not.
func (s signer) sign(method string, u *url.URL, header http.Header, payload string, at time.Time) http.Header {
	stamp := at.UTC().Format("20060102T150405Z")
	out := http.Header{"X-Amz-Date": {stamp}, "X-Amz-Content-Sha256": {payload}}
	if s.SessionToken != "" {
		out.Set("X-Amz-Security-Token", s.SessionToken)
	}
	covered := header.Clone()
	if covered == nil {
		covered = http.Header{}
	}
	maps.Copy(covered, out)
	covered.Del("Expect") // it is between two hops
	covered.Set("Host", u.Host)
	var names, lines []string
	for _, name := range slices.Sorted(maps.Keys(covered)) {
		var values []string
		for _, v := range covered[name] {
			values = append(values, strings.Join(strings.Fields(v), " "))
		}
		names = append(names, strings.ToLower(name))
		lines = append(lines, strings.ToLower(textproto.TrimString(name))+":"+strings.Join(values, ",")+"\n")
	}
	signed := strings.Join(names, ";")
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	if s.service != "s3" { // all others escape what is escaped
		path = objectstore.EscapeKey(path)
	}
	request := strings.Join([]string{method, path, u.RawQuery, strings.Join(lines, ""), signed, payload}, "\n")
	scope := stamp[:8] + "/" + s.Region + "/" + s.service + "/aws4_request"
	sum := sha256.Sum256([]byte(request))
	text := "AWS4-HMAC-SHA256\n" + stamp + "\n" + scope + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + s.SecretAccessKey)
	for _, step := range []string{stamp[:8], s.Region, s.service, "aws4_request"} {
		key = mac(key, step)
	}
	out.Set("Authorization", "AWS4-HMAC-SHA256 Credential="+s.AccessKeyID+"/"+scope+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(mac(key, text)))
	return out
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// canonicalQuery writes a query in the one form that signatures are made of.
func canonicalQuery(values url.Values) string {
	escape := func(text string) string { return strings.ReplaceAll(objectstore.EscapeKey(text), "/", "%2F") }
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range slices.Sorted(slices.Values(values[name])) {
			pairs = append(pairs, escape(name)+"="+escape(value))
		}
	}
	return strings.Join(pairs, "&")
}
