package mail

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tandem/credential"
	"tandem/fault"
)

func TestProtocol_Server(t *testing.T) {
	t.Parallel()
	out, in := smtpProtocol(), imapProtocol()
	for name, test := range map[string]struct {
		protocol  protocol
		typ, data string
		want      Server
	}{
		"SMTP":     {out, typeSMTP, `{"host":"mail.example.com"}`, Server{Host: "mail.example.com", Port: 587, Security: securityStartTLS, Trust: Trust{Server: "mail.example.com"}}},
		"SMTPS":    {out, typeSMTP, `{"host":"mail.example.com","security":"tls","username":"u","password":"p"}`, Server{Host: "mail.example.com", Port: 465, Security: securityTLS, Username: "u", Password: "p", Trust: Trust{Server: "mail.example.com"}}},
		"BaseURL":  {out, typeSMTP, `{"host":"x","port":587,"security":"none","base_url":"smtp://localhost:2525"}`, Server{Host: "localhost", Port: 2525, Security: securityNone, Trust: Trust{Server: "localhost"}}},
		"BaseTLS":  {out, typeSMTP, `{"host":"x","base_url":"smtps://localhost"}`, Server{Host: "localhost", Port: 465, Security: securityTLS, Trust: Trust{Server: "localhost"}}},
		"Gmail":    {out, typeGoogle, `{"token":"t","email":"bot@gmail.com"}`, Server{Host: "smtp.gmail.com", Port: 587, Security: securityStartTLS, Username: "bot@gmail.com", Token: "t", Address: "bot@gmail.com", Trust: Trust{Server: "mx.google.com"}}},
		"Outlook":  {in, typeMicrosoft, `{"token":"t","email":"bot@corp.com"}`, Server{Host: "outlook.office365.com", Port: 993, Security: securityTLS, Username: "bot@corp.com", Token: "t", Address: "bot@corp.com"}},
		"IMAP":     {in, typeIMAP, `{"host":"imap.example.com","username":"bot@example.com","password":"p"}`, Server{Host: "imap.example.com", Port: 993, Security: securityTLS, Username: "bot@example.com", Password: "p", Address: "bot@example.com", Trust: Trust{Server: "imap.example.com"}}},
		"Trusting": {in, typeIMAP, `{"host":"i","port":"1143","security":"starttls","username":"u","password":"p","trust_sender":"yes"}`, Server{Host: "i", Port: 1143, Security: securityStartTLS, Username: "u", Password: "p", Trust: Trust{Server: "i", Everyone: true}}},
		"Authserv": {in, typeIMAP, `{"host":"i","username":"u","password":"p","authserv_id":"mx.example.com","trust_sender":"no"}`, Server{Host: "i", Port: 993, Security: securityTLS, Username: "u", Password: "p", Trust: Trust{Server: "mx.example.com", Exact: true}}},
	} {
		got, _, err := test.protocol.server("c1", credential.Opened{Type: test.typ, Data: json.RawMessage(test.data)})
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, c := range map[string]credential.Opened{
		"OtherType": {Type: "slack_bot", Data: json.RawMessage(`{}`)}, "WrongDirection": {Type: typeIMAP, Data: json.RawMessage(`{"host":"x"}`)}, "NoHost": {Type: typeSMTP, Data: json.RawMessage(`{}`)},
		"BadSecurity": {Type: typeSMTP, Data: json.RawMessage(`{"host":"x","security":"maybe"}`)}, "BadBase": {Type: typeSMTP, Data: json.RawMessage(`{"host":"x","base_url":":"}`)}, "NoObject": {Type: typeSMTP, Data: json.RawMessage(`[]`)},
	} {
		if _, _, err := out.server("c1", c); fault.CodeOf(err) != fault.CredentialInvalid {
			t.Errorf("%s: %v, want %s", name, err, fault.CredentialInvalid)
		}
	}
}
