package outbound

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Calls between Tandem and other programs are signed with a secret that both have: the time at which they were made, and an HMAC of that
// and the body.
const (
	HeaderTimestamp = "X-Tandem-Timestamp"
	HeaderSignature = "X-Tandem-Signature"
	// SignatureSkew is how far the time of a call may be from ours: it bounds how long a recorded one can be sent again.
	SignatureSkew = 5 * time.Minute
)

// Sign adds the time and the signature of a body to the headers of a call.
func Sign(header http.Header, secret string, now time.Time, body []byte) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	header.Set(HeaderTimestamp, stamp)
	header.Set(HeaderSignature, "v1="+hex.EncodeToString(signature(secret, stamp, body)))
}

// Claim is the signature that a call says it has. Nothing is proved until it fits.
type Claim struct {
	stamp string
	// MAC is the signature, which is another one for every call that differs.
	MAC []byte
}

// ReadClaim reads the signature of a call, or returns why there is none that could fit now, as operators may read it.
func ReadClaim(header http.Header, now time.Time) (Claim, error) {
	stamp := header.Get(HeaderTimestamp)
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return Claim{}, err
	}
	if off := now.Unix() - seconds; off > int64(SignatureSkew/time.Second) || off < -int64(SignatureSkew/time.Second) {
		return Claim{}, fmt.Errorf("the timestamp is %d seconds off", off)
	}
	mac, err := hex.DecodeString(strings.TrimPrefix(header.Get(HeaderSignature), "v1="))
	return Claim{stamp, mac}, err
}

// Fits says that the call was signed with a secret. It takes as long whatever is wrong.
func (c Claim) Fits(secret string, body []byte) bool {
	return hmac.Equal(c.MAC, signature(secret, c.stamp, body))
}

func signature(secret, stamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, stamp+".") // a hash takes everything
	_, _ = mac.Write(body)
	return mac.Sum(nil)
}
