package aws

import (
	"cmp"
	"encoding/xml"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tandem/builtin/rest"
	"tandem/fault"
	"tandem/objectstore"
	"tandem/outbound"
)

// spoken is what a service says of a refusal.
type spoken struct{ Code, Message, Region string }

// readRefusal reads a refusal in any of the protocols: XML of S3 and of the older services, JSON with the code in the body or in a header.
func readRefusal(header http.Header, data []byte) (s spoken) {
	if body := gjson.ParseBytes(data); gjson.ValidBytes(data) && body.IsObject() {
		s.Code = cmp.Or(body.Get("__type").Str, body.Get("code").Str, header.Get("X-Amzn-Errortype"))
		s.Code = s.Code[strings.LastIndexByte(s.Code, '#')+1:] // com.amazonaws.dynamodb.v20120810#ThrottlingException
		s.Code, _, _ = strings.Cut(s.Code, ":")                // ThrottlingException:http://internal.amazon.com/…
		s.Message = cmp.Or(body.Get("message").Str, body.Get("Message").Str)
		return s
	}
	var e struct {
		Code, Message, Region string
		Error                 spoken
	}
	if xml.Unmarshal(data, &e) != nil {
		return spoken{Region: e.Region} // a page of somebody in between; the status says enough
	}
	if e.Error.Code != "" {
		return e.Error
	}
	return spoken{e.Code, e.Message, e.Region}
}

// throttles are the codes with which services ask to slow down. What they refuse so they have not taken.
func throttles() []string {
	return []string{
		"SlowDown", "TooManyRequests", "RequestLimitExceeded", "Throttling", "ThrottlingException", "ThrottledException",
		"Throttled", "RequestThrottled",
		"RequestThrottledException", "TooManyRequestsException", "ProvisionedThroughputExceededException",
		"KMSThrottlingException", "KmsThrottled",
		"PriorRequestNotComplete", "BandwidthLimitExceeded",
	}
}

// meaning says what a refusal means.
func meaning(status int, header http.Header, e spoken) objectstore.Said {
	s := objectstore.Said{Code: e.Code, Message: e.Message}
	switch e.Code {
	case "NoSuchBucket":
		s.As, s.Remedy = fault.NotFound, "create the bucket or correct its name"
	case "ResourceNotFoundException", "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue", "NotFound", "NotFoundException":
		s.As = fault.NotFound
	case "ConditionalCheckFailedException":
		s.As = fault.Conflict
	case "ServiceUnavailable":
		s.As = fault.RateLimited
	case "InternalError", "OperationAborted", "NoSuchUpload", "TransactionConflictException":
		s.As = fault.RemoteError // somebody else is at it, or has given the parts up: once more from the start
	case "RequestTimeout", "IncompleteBody":
		s.As = fault.NetworkError
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId", "SignatureDoesNotMatch",
		"ExpiredTokenException", "InvalidClientTokenId",
		"UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignature", "IncompleteSignatureException",
		"MissingAuthenticationToken",
		"MissingAuthenticationTokenException", "AccessDeniedException", "AuthorizationError":
		s.As = fault.CredentialInvalid
	case "RequestTimeTooSkewed", "RequestExpired":
		s.As, s.Remedy = fault.CredentialInvalid, "the clock of this machine is wrong; set it"
	case "BadDigest", "XAmzContentSHA256Mismatch", "InvalidDigest":
		damaged := objectstore.Damaged()
		s.As, s.Remedy = damaged.As, damaged.Remedy
	case "EntityTooLarge", "RequestTooLargeException":
		s.As = fault.TooLarge
	case "InvalidBucketName", "KeyTooLongError":
		s.As = fault.InvalidConfig
	}
	if slices.Contains(throttles(), e.Code) {
		s.As = fault.RateLimited
	}
	region := cmp.Or(header.Get("X-Amz-Bucket-Region"), e.Region)
	switch {
	case status == http.StatusTemporaryRedirect:
		s.As, s.Remedy = fault.RemoteError, "the bucket is new and not yet known everywhere"
	case e.Code == "AuthorizationHeaderMalformed" || e.Code == "IllegalLocationConstraintException" ||
		status == http.StatusMovedPermanently ||
		status == http.StatusBadRequest && region != "" && e.Code == "":
		s.As, s.Remedy = fault.CredentialInvalid, "the bucket is in another region; set the region of the credential"
		if regionName.MatchString(region) {
			s.Remedy += " to " + strconv.Quote(region)
		}
	}
	return s
}

// refused reads why the service refuses to take an object.
func refused(r *outbound.Response, data []byte, now time.Time) error {
	return objectstore.Refusal(r, meaning(r.Status, r.Header, readRefusal(r.Header, data)), now)
}

// refine reads why a service refuses a call of the kind. Services that are away for a while may have taken it.
func refine(r *rest.Refusal) {
	s := meaning(r.Status, r.Header, readRefusal(r.Header, r.Raw))
	said := strings.TrimSpace(objectstore.Plain(s.Code, 80) + ": " + strings.TrimRight(objectstore.Plain(s.Message, 500), "."))
	switch {
	case s.As == fault.RateLimited && s.Code != "ServiceUnavailable":
		r.Limit("AWS", cmp.Or(r.Problem.RetryAfter, outbound.RetryAfter(r.Header, time.Now())))
	case s.As != "" && s.Code != "ServiceUnavailable":
		r.Becomes(s.As)
	}
	if s.Code == "" {
		return
	}
	r.Problem.Fault.Message += " (" + strings.TrimSuffix(said, ":") + ")"
	if s.Remedy != "" {
		r.Problem.Fault.Message += "; " + s.Remedy
	}
	r.Problem.Fault = r.Problem.Fault.With("service_code", objectstore.Plain(s.Code, 80))
}
