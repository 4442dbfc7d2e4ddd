package start

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tandem/fault"
	"tandem/identity"
	"tandem/node"
	"tandem/trigger"
)

// pageConfig is what the triggers that have a page share.
type pageConfig struct {
	Path         string   `json:"path" fixed:"true" doc:"The path of the page below the address of the workflow; / is that address itself." zh:"页面在工作流地址之下的路径；/ 即该地址本身。"`
	Title        string   `json:"title" fixed:"true" doc:"The heading of the page." zh:"页面标题。"`
	Description  string   `json:"description" fixed:"true" doc:"What stands below the heading." zh:"标题下方的说明。"`
	Access       string   `json:"access" enum:"public|password|users" fixed:"true" doc:"Who may see the page: everybody, who knows the secret of the credential, or users who are logged in." zh:"谁可以访问：所有人、知道凭据密钥的人，或已登录的用户。"`
	Roles        []string `json:"roles" enum:"admin|editor|operator|approver|viewer" fixed:"true" with:"access=users" doc:"The roles of the users whom the page is for; without it, any role." zh:"可访问用户的角色；省略时任何角色均可。"`
	Origins      []string `json:"allowed_origins" fixed:"true" doc:"The sites that may show the page inside a page of theirs, such as https://www.example.com; without it, none may." zh:"允许内嵌此页面的网站，例如 https://www.example.com；省略时不允许内嵌。"`
	Limit        int      `json:"visitor_limit" range:"1..10000" fixed:"true" doc:"How often a visitor may send something within the time of visitor_limit_seconds; an address with several visitors may five times as often." zh:"访客上限：访客在 visitor_limit_seconds 时间内最多发送几次；同一地址的多名访客合计为其五倍。"`
	LimitSeconds int      `json:"visitor_limit_seconds" range:"1..86400" fixed:"true" doc:"The time that visitor_limit is about, in seconds." zh:"访客上限的时间：visitor_limit 所针对的时间（秒）。"`
}

// Defaults sets what holds when the configuration does not say otherwise.
func (c *pageConfig) Defaults() {
	c.Path, c.Access, c.Limit, c.LimitSeconds = "/", string(trigger.AccessPublic), 20, 60
}

// page is what the configuration says of a page.
func (c *pageConfig) page(kind trigger.PageType) (trigger.Page, error) {
	if wrong := wrongPagePath(c.Path); wrong != "" {
		return trigger.Page{}, fault.Newf(fault.InvalidConfig, "path: %s", wrong)
	}
	page := trigger.Page{
		Type: kind, Path: c.Path, Title: c.Title, Description: c.Description, Access: trigger.Access(c.Access), Limit: c.Limit,
		Window: time.Duration(c.LimitSeconds) * time.Second,
	}
	for _, role := range c.Roles {
		page.Roles = append(page.Roles, identity.Role(role))
	}
	for _, origin := range c.Origins {
		if wrong := wrongOrigin(origin); wrong != "" {
			return trigger.Page{}, fault.Newf(fault.InvalidConfig, "allowed_origins: %s", wrong)
		}
		page.Origins = append(page.Origins, strings.ToLower(origin))
	}
	return page, nil
}

// plan refuses what could not be deployed.
func (c *pageConfig) plan(p *node.Planning) {
	if wrong := wrongPagePath(c.Path); wrong != "" {
		p.Invalid(p.At("path"), "%s", wrong)
	}
	for n, origin := range c.Origins {
		if wrong := wrongOrigin(origin); wrong != "" {
			p.Invalid(p.At("allowed_origins")+"["+strconv.Itoa(n)+"]", "%s", wrong)
		}
	}
	if c.Access == string(trigger.AccessPassword) {
		p.Require("credential_id", "because %s is %s", "access", "password")
	}
}

// wrongPagePath says what is wrong with the path of a page; empty: nothing.
func wrongPagePath(path string) string {
	if path == "/" {
		return ""
	}
	if strings.ContainsAny(path, "{}") {
		return strconv.Quote(path) + " is the path of one page; leave out the braces"
	}
	return wrongPath(path)
}

// wrongOrigin says what is wrong with the origin of a site; empty: nothing.
func wrongOrigin(origin string) string {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" ||
		u.Fragment != "" || strings.ContainsAny(u.Host, "*;, '\"") {
		return strconv.Quote(origin) + " is not the origin of a site; write it like https://www.example.com, without a path"
	}
	return ""
}

// paged is the configuration of a trigger that has a page.
type paged interface {
	// shared is what such triggers have in common.
	shared() *pageConfig
	// present is what visitors see, or why they cannot.
	present() (trigger.Page, error)
}

func (c *pageConfig) shared() *pageConfig { return c }

// pageSource starts executions for what visitors send on a page.
type pageSource[C any, P interface {
	*C
	paged
}] struct{ kind string }

// Kind implements [trigger.Source].
func (s pageSource[C, P]) Kind() string { return s.kind }

// Register implements [trigger.Source]. It looks whether the secret of a page that has one can be read.
func (s pageSource[C, P]) Register(ctx context.Context, t trigger.Trigger) error {
	cfg, err := node.Configuration[C](t.Config)
	if err != nil || P(&cfg).shared().Access != string(trigger.AccessPassword) {
		return err
	}
	_, err = openSecret(ctx, t)
	return err
}

// Page implements [trigger.Presenter].
func (s pageSource[C, P]) Page(t trigger.Trigger) (trigger.Page, error) {
	cfg, err := node.Configuration[C](t.Config)
	if err != nil {
		return trigger.Page{}, err
	}
	return P(&cfg).present()
}

// Secret implements [trigger.Presenter]: what a visitor has to enter.
func (s pageSource[C, P]) Secret(ctx context.Context, t trigger.Trigger) (string, error) {
	opened, err := openSecret(ctx, t)
	return opened.secret, err
}
