package credential_test

import (
	"bytes"
	"testing"
)

// TestKeyring_Messages: a message opens where it was sealed for and with a ring that has its key, and nowhere else; no byte of it can be changed.
func TestKeyring_Messages(t *testing.T) {
	t.Parallel()
	one, both, other := ring(t, key(1)), ring(t, key(1)+" "+key(2)), ring(t, key(3))
	for _, message := range []string{"", "said", string(make([]byte, 100_000))} {
		sealed := one.SealMessage([]byte(message), []byte("here"))
		if got, ok := both.OpenMessage(sealed, []byte("here")); !ok || string(got) != message {
			t.Errorf("%d bytes are opened as %d, %v", len(message), len(got), ok)
		}
		if message != "" && bytes.Contains(sealed, []byte(message)) {
			t.Error("the message can be read")
		}
		if _, ok := one.OpenMessage(sealed, []byte("there")); ok {
			t.Error("it opens elsewhere")
		}
		if _, ok := other.OpenMessage(sealed, []byte("here")); ok {
			t.Error("it opens without its key")
		}
		if bytes.Equal(sealed, one.SealMessage([]byte(message), []byte("here"))) {
			t.Error("the same message is sealed in the same way")
		}
	}
	if _, ok := one.OpenMessage(both.SealMessage([]byte("newer"), nil), nil); ok {
		t.Error("a message of a newer key opens without it")
	}
	sealed := one.SealMessage([]byte("said"), nil)
	for n := range sealed {
		changed := bytes.Clone(sealed)
		changed[n] ^= 1
		if _, ok := one.OpenMessage(changed, nil); ok {
			t.Errorf("it opens with byte %d changed", n)
		}
		if _, ok := one.OpenMessage(sealed[:n], nil); ok {
			t.Errorf("%d bytes of it open", n)
		}
	}
	if stored, err := one.Seal([]byte("secret"), nil); err != nil {
		t.Error(err)
	} else if _, ok := one.OpenMessage(stored, nil); ok {
		t.Error("a credential is taken for a message")
	}
}
