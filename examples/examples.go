// Package examples holds what every installation has to begin with: workflows that people can add and run, a catalogue of them, and the
// profile "demo", a scripted model that answers them without a key and without a network.
//
// It is data and no code; packages app and server import it.
package examples

import "embed"

// DemoProfile is profiles/demo.yaml.
//
//go:embed profiles/demo.yaml
var DemoProfile []byte

// Files are the catalogue and the workflows that it names.
//
//go:embed catalogue/examples.json *.yaml
var Files embed.FS // read-only
