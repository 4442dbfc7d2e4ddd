package aws

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"tandem/credential"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/objectstore/objectstoretest"
	"tandem/outbound"
)

const (
	testID      = "AKIDEXAMPLE"
	testSecret  = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
	testSession = "session+token/canary=="
)

func newFake() *fakeS3 {
	return &fakeS3{
		id: testID, secret: testSecret, session: testSession, region: "eu-test-1", bucket: "my.bucket", objects: map[string]objectstoretest.Stored{}, uploads: map[string]*fakeUpload{},
	}
}

func keysFor(base string, change map[string]string) credential.Opened {
	data := map[string]string{"access_key_id": testID, "secret_access_key": testSecret, "session_token": testSession, "region": "eu-test-1", "base_url": base}
	for name, value := range change {
		data[name] = value
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return credential.Opened{ID: "cred_1", Type: credentialType, Data: raw}
}

func service(fake *fakeS3) objectstoretest.Setup {
	return func(_ testing.TB, client *outbound.Client, base string) objectstoretest.Service {
		return objectstoretest.Service{
			Store: S3(client), Credential: keysFor(base, nil), Handler: fake, Bucket: fake.bucket, Meta: "X-Amz-Meta-",
			Header: http.Header{"X-Amz-Storage-Class": {"STANDARD_IA"}},
			Object: func(key string) (objectstoretest.Stored, bool) {
				fake.mu.Lock()
				defer fake.mu.Unlock()
				o, ok := fake.objects[key]
				return o, ok
			},
			Pending: func() int {
				fake.mu.Lock()
				defer fake.mu.Unlock()
				return len(fake.uploads)
			},
			Refuse: func(w http.ResponseWriter, _ *http.Request, how string) {
				switch how {
				case "denied":
					fake.refuse(w, http.StatusForbidden, "AccessDenied", "Access Denied")
				case "busy":
					fake.refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
				case "broken":
					fake.refuse(w, http.StatusInternalServerError, "InternalError", "We encountered an internal error. Please try again.")
				case "damaged":
					fake.refuse(w, http.StatusBadRequest, "BadDigest", "The Content-MD5 you specified did not match what we received.")
				}
			},
			Secrets: func() []string { return []string{testSecret, testSession, "AWS4-HMAC"} },
		}
	}
}

func TestS3(t *testing.T) {
	t.Parallel()
	objectstoretest.Run(t, func(t testing.TB, client *outbound.Client, base string) objectstoretest.Service {
		return service(newFake())(t, client, base)
	})
}

func TestS3_Parts(t *testing.T) {
	t.Parallel()
	fake := newFake()
	r := objectstoretest.New(t, service(fake))
	p := &objectstoretest.Pattern{Size: 20 << 20}
	got := r.Put(r.Object("big", p), p)
	if !strings.HasSuffix(got.ETag, `-3"`) {
		t.Errorf("the etag is %s, not that of three parts", got.ETag)
	}
	if r.Requests() != 5 {
		t.Errorf("%d requests, not one to begin, three parts and one to join", r.Requests())
	}
	if len(fake.expected) != 0 {
		t.Errorf("asked before parts: %q", fake.expected)
	}
	p = &objectstoretest.Pattern{Size: 2 << 20}
	r.Put(r.Object("middle", p), p)
	if len(fake.expected) != 1 {
		t.Errorf("asked: %q", fake.expected)
	}
}

// TestS3_JoinFails: the error comes with the status 200.
func TestS3_JoinFails(t *testing.T) {
	t.Parallel()
	fake := newFake()
	r := objectstoretest.New(t, service(fake))
	fake.sickJoin = true
	p := &objectstoretest.Pattern{Size: 9 << 20}
	if f := r.Refused(t.Context(), r.Object("k", p), fault.RemoteError, "internal error"); !f.Retryable {
		t.Errorf("%v may be repeated", f)
	}
	if len(fake.uploads) != 0 || len(fake.objects) != 0 {
		t.Errorf("left: %d uploads, %d objects", len(fake.uploads), len(fake.objects))
	}
	r.Put(r.Object("k", p), p)
}

func TestS3_Credentials(t *testing.T) {
	t.Parallel()
	fake := newFake()
	r := objectstoretest.New(t, service(fake))
	for _, c := range []struct {
		name, value string
		code        fault.Code
		part        string
	}{
		{"access_key_id", "AKIDOTHER", fault.CredentialInvalid, "InvalidAccessKeyId"},
		{"secret_access_key", "wrong", fault.CredentialInvalid, "SignatureDoesNotMatch"},
		{"session_token", "expired", fault.CredentialInvalid, "InvalidToken"},
		{"region", "us-west-2", fault.CredentialInvalid, `set the region of the credential to "eu-test-1"`},
		{"region", "evil.example.com/", fault.CredentialInvalid, "region that cannot be one"},
		{"secret_access_key", "", fault.CredentialInvalid, "lacks"},
		{"base_url", "http://127.0.0.1?x", fault.CredentialInvalid, "base_url"},
	} {
		r.Credential = keysFor(r.URL, map[string]string{c.name: c.value})
		for _, size := range []int64{3, 9 << 20} {
			if f := r.Refused(t.Context(), r.Object("k", &objectstoretest.Pattern{Size: size}), c.code, c.part); f.Retryable {
				t.Errorf("%v may not be repeated", f)
			}
		}
	}
	r.Credential = keysFor(r.URL, nil)
	o := r.Object("k", &objectstoretest.Pattern{Size: 3})
	o.Clock = func() time.Time { return time.Now().Add(-time.Hour) }
	r.Refused(t.Context(), o, fault.CredentialInvalid, "clock of this machine")
}

func TestS3_Answers(t *testing.T) {
	t.Parallel()
	fake := newFake()
	r := objectstoretest.New(t, service(fake))
	for _, c := range []struct {
		status     int
		code, want string
		retryable  bool
		region     string
	}{
		{503, "SlowDown", "rate_limited", true, ""},
		{503, "ServiceUnavailable", "rate_limited", true, ""},
		{409, "OperationAborted", "remote_error", true, ""},
		{400, "RequestTimeout", "network_error", true, ""},
		{400, "ExpiredToken", "credential_invalid", false, ""},
		{400, "EntityTooLarge", "too_large", false, ""},
		{400, "InvalidBucketName", "invalid_config", false, ""},
		{400, "InvalidArgument", "remote_rejected", false, ""},
		{301, "PermanentRedirect", `credential_invalid: host "127.0.0.1" answered 301 PermanentRedirect: because; the bucket is in another region; set the region of the credential to "eu-west-3"`, false, "eu-west-3"},
		{307, "TemporaryRedirect", "remote_error", true, ""},
	} {
		r.Interfere(func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("X-Amz-Bucket-Region", c.region)
			fake.refuse(w, c.status, c.code, "because")
			return true
		})
		_, err := r.Store.Put(t.Context(), r.Credential, r.Object("k", &objectstoretest.Pattern{Size: 3}))
		text := strings.ReplaceAll(fmt.Sprint(err), strings.TrimPrefix(r.URL, "http://"), "127.0.0.1")
		if f := fault.From(err); !strings.HasPrefix(text, c.want) || f.Retryable != c.retryable || f.Details["service_code"] != c.code {
			t.Errorf("%d %s: got %v %v", c.status, c.code, text, f.Details)
		}
	}
}

func TestObjectAddress(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ region, bucket, key, want string }{
		{"eu-west-1", "docs", "a b/ü", "https://docs.s3.eu-west-1.amazonaws.com/a%20b/%C3%BC"},
		{"eu-west-1", "with.dots", "k", "https://s3.eu-west-1.amazonaws.com/with.dots/k"},
		{"eu-west-1", "Upper", "k", "https://s3.eu-west-1.amazonaws.com/Upper/k"},
		{"cn-north-1", "docs", "k", "https://docs.s3.cn-north-1.amazonaws.com.cn/k"},
	} {
		if got := objectAddress(c.region, nil, c.bucket, c.key).String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// BenchmarkS3 shows what is allocated for 100 MB: the parts that the fake keeps are not the sender's, so it keeps none.
func BenchmarkS3(b *testing.B) {
	fake := newFake()
	r := objectstoretest.New(b, service(fake))
	r.Interfere(discard)
	const size = 100 << 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Store.Put(b.Context(), r.Credential, objectstore.Object{
			Bucket: fake.bucket, Key: "k", Content: (&objectstoretest.Pattern{Size: size}).Content(), Timeout: time.Minute, Clock: time.Now,
		}); err != nil {
			b.Fatal(err)
		}
	}
}
