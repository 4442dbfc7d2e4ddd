package identity_test

import (
	"strings"
	"testing"

	"tandem/identity"
)

func TestWeakness(t *testing.T) {
	t.Parallel()
	for _, weak := range []string{
		"", "brief", "hunter2", "123456789012345", strings.Repeat("a", 40), strings.Repeat("ab12", 10), "abcdefghijklmnopqrstuvwxyz", "01234567890123456789", "qwertyuiopasdfghjkl",
		"password-password-1", "my-secret-token-123456", "ChangeMe-ChangeMe-Please", "admin-token-for-tandem", "this-is-my-secret-key", "test-token-test-token-12", "zyxwvutsrqponmlkji",
		"super-secret-api-key", "aaaaaaaabbbbbbbbccccccccdddddddd",
		"passwordpassword1234", "Password2024Password2025", "P@ssw0rd-P@ssw0rd-99", "pa55word-t0ken-adm1n", "Summer2026Winter2027!", "dragon-monkey-football", "1q2w3e4r5t6y7u8i", "1qaz2wsx3edc4rfv5tgb", "zxcvbnmasdfghjkl",
		"hunter2hunter2hunter2x", "abc123abc123abc123zz", "letmein-letmein-2026", "production-api-key-2026", "aaaaaaaaaaaaaaaabcdefgh1",
	} {
		if got := identity.Weakness(weak); got.IsZero() {
			t.Errorf("%q is taken", weak)
		} else if weak != "" && strings.Contains(got.String(), weak) {
			t.Errorf("the secret is told: %s", got)
		}
	}
	good := []string{
		"5f4dcc3b5aa765d61d8327deb882cf99", "tdm_of_the_tests_0123456789", "correct horse battery staple", "Xk9#mQ2$vL7!pR4z", "8WkzPqLr3mNvT6yB", "the-secret-of-the-environment", "a-configured-token",
		"f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
	}
	for range 200 {
		good = append(good, identity.NewSecret())
	}
	for _, secret := range good {
		if why := identity.Weakness(secret); !why.IsZero() {
			t.Errorf("%q %s", secret, why)
		}
	}
}
