package aws

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestSigner_Sign holds the signer to the examples that the vendor publishes for S3, with their keys and results.
func TestSigner_Sign(t *testing.T) {
	t.Parallel()
	s := signer{keys{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Region: "us-east-1"}, "s3"}
	at := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name, method, path, query string
		header                    http.Header
		payload, signed, want     string
	}{
		{
			"GetObject", "GET", "/test.txt", "", http.Header{"Range": {"bytes=0-9"}}, emptySum,
			"host;range;x-amz-content-sha256;x-amz-date", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
		},
		{
			"PutObject", "PUT", "/test$file.text", "", http.Header{"Date": {"Fri, 24 May 2013 00:00:00 GMT"}, "X-Amz-Storage-Class": {"REDUCED_REDUNDANCY"}},
			"44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
			"date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class", "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
		},
		{
			"Lifecycle", "GET", "/", canonicalQuery(url.Values{"lifecycle": {""}}), nil, emptySum,
			"host;x-amz-content-sha256;x-amz-date", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
		},
		{
			"ListObjects", "GET", "/", canonicalQuery(url.Values{"prefix": {"J"}, "max-keys": {"2"}}), nil, emptySum,
			"host;x-amz-content-sha256;x-amz-date", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
		},
	} {
		u := objectAddress("us-east-1", nil, "examplebucket", strings.TrimPrefix(c.path, "/"))
		u.Host, u.RawQuery = "examplebucket.s3.amazonaws.com", c.query
		got := s.sign(c.method, u, c.header, c.payload, at).Get("Authorization")
		want := "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, SignedHeaders=" + c.signed + ", Signature=" + c.want
		if got != want {
			t.Errorf("%s: got\n%s, want\n%s", c.name, got, want)
		}
	}
}

// discard answers like S3 and keeps nothing.
func discard(w http.ResponseWriter, r *http.Request) bool {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return true
	}
	w.Header().Set("ETag", `"e"`)
	_, _ = io.WriteString(w, "<R><UploadId>u</UploadId><ETag>e</ETag></R>")
	return true
}
