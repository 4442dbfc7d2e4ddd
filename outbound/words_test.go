package outbound

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"testing"
	"time"

	"tandem/fault"
	"tandem/text"
)

// TestErrors_Words: what becomes of a call is told in the language of the reader, with all that it is made of.
func TestErrors_Words(t *testing.T) {
	t.Parallel()
	_, allowed := ParseAllow("10.0.0.1/8")
	answer := Response{Status: http.StatusForbidden, URL: &url.URL{Host: "h"}}
	for name, c := range map[string]struct {
		err    error
		en, zh string
	}{
		"Private": {AllowList{}.check("h", netip.MustParseAddr("10.0.0.1")), `host "h" is not called: it is a private address; if that is meant, the operator allows it with --http-allow (TANDEM_HTTP_ALLOW)`,
			`不调用主机 "h"：它是私有地址；如确有需要，运维人员可用 --http-allow（TANDEM_HTTP_ALLOW）允许`},
		"Allow":   {allowed, `http-allow: "10.0.0.1/8" has bits beyond its length; write 10.0.0.0/8`, `http-allow："10.0.0.1/8" 在前缀长度之外还有非零位；请写成 10.0.0.0/8`},
		"Refused": {explain(context.Background(), "h", syscall.ECONNREFUSED), `host "h" refused the connection`, `主机 "h" 拒绝了连接`},
		"Slow":    {timeout("h", errFirstByte), `host "h" did not begin to answer in time`, `主机 "h" 未能及时开始答复`},
		"Status":  {answer.Problem(time.Time{}).Fault, `host "h" answered 403 Forbidden; check the credential and what it may do`, `主机 "h" 答复了 403 Forbidden；请检查凭据及其权限`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := fault.From(c.err)
			if en, zh := text.ErrorIn(text.English, e), text.ErrorIn(text.Chinese, e); en != c.en || zh != c.zh {
				t.Errorf("it says %s and %s, want %s and %s", en, zh, c.en, c.zh)
			}
		})
	}
}
