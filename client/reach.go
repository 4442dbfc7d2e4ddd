package client

import (
	"context"
	"net/http"

	"tandem/api"
	"tandem/fault"
)

// ContactChannels lists the accounts through which people can let questions reach them.
func (c *Client) ContactChannels(ctx context.Context) (api.ContactChannels, error) {
	return get[api.ContactChannels](ctx, c, to("/contact-channels"), nil)
}

// PutContactChannel makes or replaces a contact channel.
func (c *Client) PutContactChannel(ctx context.Context, name string, r api.ContactChannelRequest) (api.ContactChannel, error) {
	return send[api.ContactChannel](ctx, c, http.MethodPut, to("/contact-channels/%s", name), r)
}

// DeleteContactChannel removes a contact channel; with force also one that users have chosen.
func (c *Client) DeleteContactChannel(ctx context.Context, name string, force bool) error {
	sent := 0
	_, err := c.sendRequest(ctx, request{method: http.MethodDelete, path: to("/contact-channels/%s", name),
		query: forced(force), repeatable: true}, &sent)
	if sent > 1 && fault.CodeOf(err) == fault.NotFound {
		return nil // a repetition that finds nothing has done it the first time
	}
	return err
}

// Reach returns where questions reach a user; "me" is the user that the token belongs to.
func (c *Client) Reach(ctx context.Context, user string) (api.Reach, error) {
	return get[api.Reach](ctx, c, to("/users/%s/reach", user), nil)
}

// UpdateReach says where questions reach a user.
func (c *Client) UpdateReach(ctx context.Context, user string, r api.ReachRequest) (api.Reach, error) {
	return send[api.Reach](ctx, c, http.MethodPut, to("/users/%s/reach", user), r)
}

// ProveAddress lets the server send a code to an address of the user that the token belongs to.
func (c *Client) ProveAddress(ctx context.Context, r api.AddressRequest) (api.AddressProof, error) {
	return send[api.AddressProof](ctx, c, http.MethodPost, to("/users/me/addresses"), r)
}

// ConfirmAddress proves an address with the code that was sent there.
func (c *Client) ConfirmAddress(ctx context.Context, r api.AddressConfirmation) (api.Reach, error) {
	return send[api.Reach](ctx, c, http.MethodPost, to("/users/me/addresses/confirm"), r)
}

// DeleteAddress removes an address that the user of the token has proved.
func (c *Client) DeleteAddress(ctx context.Context, address string) error {
	return remove(ctx, c, to("/users/me/addresses/%s", address))
}
