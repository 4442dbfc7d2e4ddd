// Package examples holds the profile "demo", which every installation has: a scripted model that answers the example
// workflows beside it without a key and without a network.
//
// It is data and no code; package app imports it. The workflows are files to read and to copy, and are not embedded.
package examples

import _ "embed"

// DemoProfile is profiles/demo.yaml.
//
//go:embed profiles/demo.yaml
var DemoProfile []byte
