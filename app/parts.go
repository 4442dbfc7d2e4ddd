package app

import "tandem/store"

// Stores are the stores of the instance, for programs that look at or prepare what is kept: a benchmark, for example. They are closed
// with the instance.
func (i *Instance) Stores() store.Stores { return i.stores }

// Host is what drives the executions of the instance, for programs that start and signal them below the API. It is closed with the
// instance.
func (i *Instance) Host() Host { return i.host }
