package gateway

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"tandem/api"
)

// Caller is where a call of the protocol comes from. The API enters it in its audit log as if it had been called from there.
type Caller struct {
	// Address is that of the client, Agent what its program says that it is called. Both may be empty.
	Address, Agent string
}

type callerKey struct{}

// CallerOf is the caller under a context; its zero value: nobody has called, the gateway asks for itself.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// withCaller keeps where a request comes from. The server has put the address into its headers, whatever was there before.
func withCaller(ctx context.Context, req mcp.Request) context.Context {
	extra := req.GetExtra()
	if extra == nil || extra.Header == nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, Caller{Address: extra.Header.Get(api.CallerHeader), Agent: extra.Header.Get("User-Agent")})
}
