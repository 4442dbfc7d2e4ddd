package credential

import (
	"crypto/rand"
)

// A sealed message:
//
//	key id 8 | salt 16 | text under a key that is derived from the master key and the salt, 28 longer than it
//
// The key is used for one message, so that any number of messages may be sent. The additional data is the bound context.
const saltSize = 16

// SealMessage encrypts a message between processes that have the same newest key, and binds it to a context.
func (k *Keyring) SealMessage(message, context []byte) []byte {
	master := k.newest()
	out := make([]byte, idSize+saltSize, idSize+saltSize+overhead+len(message))
	copy(out, master.id[:])
	salt := out[idSize:]
	rand.Read(salt) // never fails: the runtime ends the process instead
	aead, err := newAEAD(derive(master.messages, salt))
	if err != nil {
		return nil // a derived key has the right size; nothing is never taken for a message
	}
	return append(out, aead.Seal(nil, nil, message, context)...)
}

// OpenMessage decrypts what SealMessage made, if the context is the same and the ring has the key; false: it is not to be believed.
func (k *Keyring) OpenMessage(sealed, context []byte) (message []byte, ok bool) {
	if len(sealed) < idSize+saltSize+overhead {
		return nil, false
	}
	master, ok := k.find(keyID(sealed[:idSize]))
	if !ok {
		return nil, false
	}
	aead, err := newAEAD(derive(master.messages, sealed[idSize:idSize+saltSize]))
	if err != nil {
		return nil, false // as above
	}
	message, err = aead.Open(nil, nil, sealed[idSize+saltSize:], context)
	return message, err == nil
}
