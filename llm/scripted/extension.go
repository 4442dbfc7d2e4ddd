package scripted

import (
	"tandem/fault"
	"tandem/llm"
	"tandem/plug"
	"tandem/text"
)

// Name is what profiles call this provider.
const Name = "scripted"

// Extension is what this package brings.
func Extension(plug.Deps) plug.Extension {
	return plug.Extension{Name: Name, Providers: []plug.Provider{{
		Name: Name, Label: text.Beside("A script, without a service", "脚本，不需要服务"), Scripted: true, New: New, Check: checkScript,
	}}}
}

// checkScript refuses a profile whose script could never be played.
func checkScript(p llm.Profile) error {
	if _, err := New(llm.Settings{Script: p.Script}); err != nil {
		return fault.Newf(fault.InvalidInput, "script: %s", fault.From(err).Message).With("path", "script")
	}
	return nil
}
