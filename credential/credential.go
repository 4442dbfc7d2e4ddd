package credential

import "encoding/json"

// SealData checks the data of a credential against its type and seals it for its place.
func (k *Keyring) SealData(workspace, id, typeName string, data json.RawMessage) ([]byte, error) {
	if err := Validate(typeName, data); err != nil {
		return nil, err
	}
	return k.Seal(data, Context(workspace, id, typeName))
}

// OpenData opens a credential for use: its secrets are held by the redactor before anybody has the data, until release.
// Release also clears the data, so nothing may use it, or a slice of it, afterwards.
func (k *Keyring) OpenData(r *Redactor, workspace, id, typeName string, sealed []byte) (data json.RawMessage, release func(), err error) {
	data, err = k.Open(sealed, Context(workspace, id, typeName))
	if err != nil {
		return nil, nil, err
	}
	secrets, err := Secrets(typeName, data)
	if err != nil {
		clear(data)
		return nil, nil, err
	}
	forget := r.Hold(secrets...)
	return data, func() {
		clear(data)
		forget()
	}, nil
}
