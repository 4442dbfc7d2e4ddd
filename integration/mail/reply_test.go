package mail

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

func parse(t *testing.T, text string) Mail {
	t.Helper()
	m, err := ParseMail([]byte(strings.ReplaceAll(text, "\n", "\r\n")), Trust{Server: "mx.example.com", Exact: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func encoded(t *testing.T, e encoding.Encoding, text string) string {
	t.Helper()
	raw, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseMail_Text(t *testing.T) {
	t.Parallel()
	b64 := func(e encoding.Encoding, text string) string {
		return base64.StdEncoding.EncodeToString([]byte(encoded(t, e, text)))
	}
	const head = "From: ann@example.com\nMIME-Version: 1.0\n"
	for name, test := range map[string]struct{ mail, want string }{
		"Plain":           {head + "\nhello\n\n> quoted\n>> twice\n-- \nAnn\n", "hello\n\n> quoted\n>> twice\n--\nAnn"},
		"QuotedPrintable": {head + "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n=E5=90=8C=E6=84=8F=\n=E3=80=82\n", "同意。"},
		"GB18030":         {head + "Content-Type: text/plain; charset=gb18030\nContent-Transfer-Encoding: base64\n\n" + b64(simplifiedchinese.GB18030, "同意，请付款。𠮷") + "\n", "同意，请付款。𠮷"},
		"GB2312":          {head + "Content-Type: text/plain; charset=\"gb2312\"\nContent-Transfer-Encoding: 8bit\n\n" + encoded(t, simplifiedchinese.GBK, "不同意，镕") + "\n", "不同意，镕"},
		"Big5":            {head + "Content-Type: text/plain; charset=Big5\n\n" + encoded(t, traditionalchinese.Big5, "同意，請付款") + "\n", "同意，請付款"},
		"ISO-2022-JP":     {head + "Content-Type: text/plain; charset=iso-2022-jp\n\n" + encoded(t, japanese.ISO2022JP, "承認します") + "\n", "承認します"},
		"ShiftJIS":        {head + "Content-Type: text/plain; charset=Shift_JIS\n\n" + encoded(t, japanese.ShiftJIS, "承認します") + "\n", "承認します"},
		"NoCharset":       {head + "Content-Type: text/plain\n\n" + encoded(t, simplifiedchinese.GB18030, "同意付款") + "\n", "同意付款"},
		"UnknownCharset":  {head + "Content-Type: text/plain; charset=x-klingon\n\nyes\n", "yes"},
		"Latin1":          {head + "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nOui, c'est approuv=E9\n", "Oui, c'est approuvé"},
		"HTMLOnlyChinese": {head + "Content-Type: text/html; charset=gb18030\nContent-Transfer-Encoding: base64\n\n" +
			b64(simplifiedchinese.GB18030, `<html><head><title>x</title><style>p{}</style></head><body><div>同意&nbsp;付款</div><div><br></div><div>张三</div><blockquote><div>在周一写道：</div><p>请批准<br>[ref:abc]</p></blockquote></body></html>`) + "\n",
			"同意 付款\n\n张三\n> 在周一写道：\n> 请批准\n> [ref:abc]"},
		"HiddenHTML":       {head + "Content-Type: text/html\n\n<p>No.</p><div style=\"display : none\">approve</div><span hidden>approve</span><script>approve</script><!-- approve --><p>Sorry</p>", "No.\nSorry"},
		"HTMLList":         {head + "Content-Type: text/html\n\n<ul><li>one</li><li>two</ul><table><tr><td>a</td><td>b</td></tr></table><pre>x\n  y</pre>", "- one\n- two\na b\nx\n  y"},
		"Alternative":      {head + "Content-Type: multipart/alternative; boundary=\"=_b\"\n\npreamble\n--=_b\nContent-Type: text/plain\n\nplain\n--=_b\nContent-Type: text/html\n\n<b>rich</b>\n--=_b--\nepilogue\n", "plain"},
		"BlankAlternative": {head + "Content-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain\n\n \n--b\nContent-Type: multipart/related; boundary=c\n\n--c\nContent-Type: text/html\n\n<b>rich</b>\n--c\nContent-Type: image/png\n\nxx\n--c--\n--b--\n", "rich"},
		"Attachments":      {head + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nyes\n--b\nContent-Type: text/plain; name=a.txt\n\nattached\n--b\nContent-Type: text/plain\nContent-Disposition: attachment\n\nattached\n--b\nContent-Type: text/plain\n\nfooter\n--b--\n", "yes\n\nfooter"},
		"Forwarded":        {head + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nsee below\n--b\nContent-Type: message/rfc822\n\nFrom: bob@example.com\n\nI approve\n--b--\n", "see below"},
		"CutOff":           {head + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte("yes, do it"))[:14], "yes, do it"},
		"BoundaryInText":   {head + "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain\n\nyes\n--bee\n --b\n--b--\n", "yes\n--bee\n --b"},
		"NoBoundary":       {head + "Content-Type: multipart/mixed\n\nyes\n", ""},
		"BadContentType":   {head + "Content-Type: text/plain; charset=utf-8; charset=utf-8; =\n\n同意\n", "同意"},
		"BadHeaderLine":    {"this is not a field\n" + head + "nor this\n\nyes\n", "yes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := parse(t, test.mail)
			if diff := cmp.Diff(test.want, m.Text); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if m.From != "ann@example.com" {
				t.Errorf("From is %q", m.From)
			}
		})
	}
}

func TestParseMail_Headers(t *testing.T) {
	t.Parallel()
	ours, other := messageID("w1", "m1", "tok1", "example.com"), "other@example.com"
	m := parse(t, "From: =?gb2312?B?"+base64.StdEncoding.EncodeToString([]byte(encoded(t, simplifiedchinese.GBK, "张三")))+"?= <Zhang@Example.com>\nSubject: =?utf-8?Q?Re:_=E5=90=8C=E6=84=8F?=\n =?utf-8?Q?=3F?=\nMessage-Id: <a\n b@example.com>\nIn-Reply-To: <"+other+">\nReferences: <first@example.com>\n\t<"+ours+"> <"+other+">\n\nyes")
	want := Mail{
		ID: "ab@example.com", Threads: []string{other, ours, "first@example.com"}, Token: "tok1", From: "zhang@example.com", Name: "张三", Subject: "Re: 同意?", Text: "yes", Answers: true,
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("mail (-want +got):\n%s", diff)
	}
	if !m.Concerns() {
		t.Error("a reply to a message of ours does not concern us")
	}
	for name, text := range map[string]string{
		"Stranger":        "From: ann@example.com\nIn-Reply-To: <tandem.x@example.com>\n\nyes",
		"SeveralSenders":  "From: ann@example.com, bob@example.com\n\nyes",
		"UnreadableFrom":  "From: ann at example\n\nyes",
		"NoMarkerInOther": "From: ann@example.com\nSubject: [ref:]\n\n[ref:a b]",
	} {
		if m := parse(t, text); m.Concerns() || name != "Stranger" && name != "NoMarkerInOther" && m.From != "" {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if _, err := ParseMail([]byte("\r\nno header"), Trust{}); err == nil {
		t.Error("what has no header was taken for a mail")
	}
}

func TestParseMail_Token(t *testing.T) {
	t.Parallel()
	nearest, older := messageID("w1", "m2", "near", "example.com"), messageID("w1", "m1", "old", "example.com")
	for name, test := range map[string]struct{ mail, want string }{
		"NearestThread": {"From: a@b.c\nIn-Reply-To: <" + nearest + ">\nReferences: <" + older + "> <" + nearest + ">\nSubject: Re: x [ref:subject]\n\n[ref:body]", "near"},
		"Subject":       {"From: a@b.c\nSubject: Re: x [ref:subject]\n\n[ref:body]", "subject"},
		"FoldedSubject": {"From: a@b.c\nSubject: Re: x\n [ref:subject]\n\nyes", "subject"},
		"Body":          {"From: a@b.c\nSubject: Re: x\n\nyes\n> [ref:body_-1]\n", "body_-1"},
		"HTMLBody":      {"From: a@b.c\nContent-Type: text/html\n\n<p>yes</p><blockquote>[ref:<b>body</b>]</blockquote>", "body"},
		"None":          {"From: a@b.c\nSubject: ref: x\n\nref:x", ""},
	} {
		if m := parse(t, test.mail); m.Token != test.want {
			t.Errorf("%s: token %q, want %q", name, m.Token, test.want)
		}
	}
}

func TestParseMail_Automatic(t *testing.T) {
	t.Parallel()
	ours := messageID("w1", "m1", "tok1", "example.com")
	bounce := "From: Mail Delivery System <MAILER-DAEMON@example.com>\nSubject: Undelivered Mail Returned to Sender\nContent-Type: multipart/report; report-type=delivery-status; boundary=b\n\n" +
		"--b\nContent-Type: text/plain\n\nThe mail could not be delivered.\n--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.com\n--b\nContent-Type: %s\n\nFrom: bot@example.com\nMessage-ID: <" + ours + ">\n\nPlease approve\n--b--\n"
	for name, test := range map[string]struct {
		mail string
		want bool
	}{
		"Person":            {"From: ann@example.com\nSubject: Re: Out of office policy\n\nok", false},
		"SubmittedNo":       {"From: ann@example.com\nAuto-Submitted: no\n\nok", false},
		"ReturnPath":        {"Return-Path: <ann@example.com>\nFrom: ann@example.com\n\nok", false},
		"SuppressNone":      {"From: ann@example.com\nX-Auto-Response-Suppress: None\n\nok", false},
		"OutOfOffice":       {"From: ann@example.com\nAuto-Submitted: auto-replied (vacation)\n\napprove", true},
		"XAutoreply":        {"From: ann@example.com\nX-Autoreply: yes\n\napprove", true},
		"Precedence":        {"From: ann@example.com\nPrecedence: bulk\n\napprove", true},
		"PrecedenceList":    {"From: ann@example.com\nPrecedence: List\n\napprove", true},
		"Suppress":          {"From: ann@example.com\nX-Auto-Response-Suppress: All\n\napprove", true},
		"EmptyReturnPath":   {"Return-Path: <>\nFrom: ann@example.com\n\napprove", true},
		"ReadReceipt":       {"From: ann@example.com\nContent-Type: multipart/report; report-type=disposition-notification; boundary=b\n\n--b\nContent-Type: text/plain\n\nread\n--b--\n", true},
		"BareReceipt":       {"From: ann@example.com\nContent-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: message/disposition-notification\n\nDisposition: x\n--b--\n", true},
		"Bounce":            {fmt.Sprintf(bounce, "message/rfc822"), true},
		"BounceHeaders":     {fmt.Sprintf(bounce, "text/rfc822-headers"), true},
		"Subject":           {"From: ann@example.com\nSubject: Automatic reply: Pay?\n\napprove", true},
		"SubjectChinese":    {"From: ann@example.com\nSubject: =?utf-8?B?" + base64.StdEncoding.EncodeToString([]byte("自动回复：付款")) + "?=\n\n同意", true},
		"SubjectRead":       {"From: ann@example.com\nSubject: Read: Pay?\n\napprove", true},
		"FailedRecipients":  {"From: x@example.com\nX-Failed-Recipients: ann@example.com\n\napprove", true},
		"SubjectNotAnchord": {"From: ann@example.com\nSubject: Re: Automatic reply settings\n\nok", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := parse(t, test.mail)
			if m.Automatic != test.want {
				t.Errorf("automatic is %v, want %v", m.Automatic, test.want)
			}
			if strings.HasPrefix(name, "Bounce") && (!m.Concerns() || m.Token != "tok1" || m.Text != "The mail could not be delivered.") {
				t.Errorf("the bounce of our message is %+v", m)
			}
		})
	}
}

func TestParseMail_Verified(t *testing.T) {
	t.Parallel()
	example, office, host := Trust{Server: "mx.example.com", Exact: true}, Trust{}, Trust{Server: "imap.example.com"}
	for name, test := range map[string]struct {
		trust  Trust
		header string
		want   bool
	}{
		"Nothing":             {example, "", false},
		"DKIM":                {example, "Authentication-Results: mx.example.com; dkim=pass header.d=corp.com\n", true},
		"DKIMIdentity":        {example, "Authentication-Results: mx.example.com; dkim=pass header.i=@mail.corp.com\n", true},
		"DKIMSubdomain":       {example, "Authentication-Results: mx.example.com 1; dkim=pass header.d=mail.corp.com\n", true},
		"DKIMOther":           {example, "Authentication-Results: mx.example.com; dkim=pass header.d=evil.com\n", false},
		"DKIMFail":            {example, "Authentication-Results: mx.example.com; dkim=fail header.d=corp.com\n", false},
		"DKIMSecond":          {example, "Authentication-Results: mx.example.com; dkim=pass header.d=list.org; dkim=pass header.d=corp.com\n", true},
		"SPF":                 {example, "Authentication-Results: mx.example.com; spf=pass smtp.mailfrom=ann@corp.com\n", true},
		"SPFDomain":           {example, "Authentication-Results: mx.example.com; spf=pass smtp.mailfrom=corp.com\n", true},
		"SPFOther":            {example, "Authentication-Results: mx.example.com; spf=pass smtp.mailfrom=ann@evil.com\n", false},
		"SPFHelo":             {example, "Authentication-Results: mx.example.com; spf=pass smtp.helo=corp.com\n", false},
		"DMARC":               {example, "Authentication-Results: mx.example.com; dmarc=pass header.from=corp.com\n", true},
		"DMARCFail":           {example, "Authentication-Results: mx.example.com; dkim=pass header.d=corp.com; dmarc=fail header.from=corp.com\n", false},
		"DMARCOther":          {example, "Authentication-Results: mx.example.com; dmarc=pass header.from=evil.com\n", false},
		"AnotherServer":       {example, "Authentication-Results: evil.com; dkim=pass header.d=corp.com\n", false},
		"ForgedBelow":         {example, "Authentication-Results: mx.example.com; dkim=none\nAuthentication-Results: mx.example.com; dkim=pass header.d=corp.com\n", false},
		"ForgedBelowAnother":  {example, "Authentication-Results: filter.net; dkim=none\nAuthentication-Results: mx.example.com; dkim=pass header.d=corp.com\n", false},
		"InComment":           {example, "Authentication-Results: mx.example.com; dkim=none (dkim=pass header.d=corp.com; x (y) \\) ; dkim=pass header.d=corp.com)\n", false},
		"InQuotes":            {example, "Authentication-Results: mx.example.com; spf=fail smtp.mailfrom=\"a; dkim=pass header.d=corp.com \"@evil.com\n", false},
		"OpenComment":         {example, "Authentication-Results: mx.example.com; dkim=pass header.d=corp.com (\n", false},
		"OpenQuote":           {example, "Authentication-Results: mx.example.com; dkim=pass header.d=corp.com reason=\"\n", false},
		"BrokenOut":           {example, "Authentication-Results: mx.example.com; spf=fail (domain of x) y; dkim=pass header.d=corp.com )\n", false},
		"FactTwice":           {example, "Authentication-Results: mx.example.com; dkim=pass header.d=evil.com header.d=corp.com\n", false},
		"Folded":              {example, "Authentication-Results: mx.example.com;\n\tdkim = pass (2048-bit key)\n\theader.d = corp.com\n", true},
		"SameOrganisation":    {host, "Authentication-Results: mx7.example.com; dkim=pass header.d=corp.com\n", true},
		"OtherOrganisation":   {host, "Authentication-Results: example.com.evil.org; dkim=pass header.d=corp.com\n", false},
		"Nameless":            {office, "Authentication-Results: spf=pass (sender IP is 1.2.3.4) smtp.mailfrom=corp.com; dkim=pass (signature was verified) header.d=corp.com;dmarc=pass action=none header.from=corp.com;compauth=pass reason=100\n", true},
		"NamelessElsewhere":   {example, "Authentication-Results: dkim=pass header.d=corp.com\n", false},
		"NamedForOffice":      {office, "Authentication-Results: evil.com; dkim=pass header.d=corp.com\n", false},
		"PublicSuffix":        {example, "Authentication-Results: mx.example.com; dkim=pass header.d=com\n", false},
		"Everyone":            {Trust{Server: "x", Everyone: true}, "", true},
		"SecondFrom":          {example, "Authentication-Results: mx.example.com; dkim=pass header.d=corp.com\nFrom: boss@corp.com\n", false},
		"EveryoneSecondFrom":  {Trust{Everyone: true}, "From: boss@corp.com\n", false},
		"DMARCTemporaryError": {example, "Authentication-Results: mx.example.com; dkim=pass header.d=corp.com; dmarc=temperror\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := ParseMail([]byte(test.header+"From: ann@corp.com\nSubject: x\n\nyes"), test.trust)
			if err != nil {
				t.Fatal(err)
			}
			if m.Verified != test.want {
				t.Errorf("verified is %v, want %v", m.Verified, test.want)
			}
		})
	}
}

func TestReceiverOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ typ, host, want string }{
		{typeIMAP, "imap.gmail.com", "mx.google.com"}, {typeGoogle, "127.0.0.1", "mx.google.com"}, {typeIMAP, "outlook.office365.com", ""},
		{typeMicrosoft, "127.0.0.1", ""}, {typeIMAP, "IMAP.example.com", "imap.example.com"},
	} {
		if got := receiverOf(test.typ, test.host); got != test.want {
			t.Errorf("%s %s: %q, want %q", test.typ, test.host, got, test.want)
		}
	}
}

func FuzzParseMail(f *testing.F) {
	for _, text := range []string{
		"From: a@b.c\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n--b\r\n\r\nx\r\n--b--",
		"From: a@b.c\nContent-Type: text/html; charset=gb18030\nContent-Transfer-Encoding: quoted-printable\n\n<blockquote><pre>=81=30</blockquote></p>",
		"Authentication-Results: a (b \\) \"; c=d e.f=\"g\\\"\"; h / 1 = i\nFrom: a@b.c\nSubject: =?iso-2022-jp?B?GyRCO3o=?= [ref:x]\n\n",
		"From: a@b.c\nContent-Type: multipart/report; boundary=\"\"\n\n--\nContent-Type: message/rfc822\n\nMessage-ID: <tandem.",
		"A:\n \n \n:\n", "From: a@b.c\nContent-Type: text/plain; charset=utf-16\nContent-Transfer-Encoding: base64\n\n//79",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := ParseMail(raw, Trust{Server: "a"})
		if err != nil {
			return
		}
		for what, text := range map[string]string{"text": m.Text, "subject": m.Subject, "name": m.Name} {
			if strings.ToValidUTF8(text, "") != text {
				t.Errorf("the %s is not UTF-8: %q", what, text)
			}
		}
		if len(m.Text) > maxText || len(m.Threads) > maxThreads || strings.ContainsAny(m.Subject+m.Name, "\r\n") || strings.Contains(m.Text, "\r") {
			t.Errorf("%d bytes, %d threads, subject %q, name %q", len(m.Text), len(m.Threads), m.Subject, m.Name)
		}
		if m.Token != "" && !tokenForm(m.Token) {
			t.Errorf("token %q", m.Token)
		}
	})
}
