package credential

import (
	"slices"
	"strings"
)

// Label is a text in the two languages that people read.
type Label struct {
	Zh string `json:"zh"`
	En string `json:"en"`
}

// Format is what a field's value looks like.
type Format string

// The formats.
const (
	FormatText     Format = "text"     // one line
	FormatURL      Format = "url"      // an absolute address without a password in it
	FormatPort     Format = "port"     // 1 to 65535
	FormatChoice   Format = "choice"   // one of Choices
	FormatTexts    Format = "texts"    // a list of lines
	FormatObjects  Format = "objects"  // a list of objects
	FormatDocument Format = "document" // a JSON object, or the same as text
	FormatAuth     Format = "auth"     // an object with the fields of http_auth but base_url
)

// Field is one value of a credential.
type Field struct {
	Name     string   `json:"name"`
	Label    Label    `json:"label"`
	Format   Format   `json:"format"`
	Required bool     `json:"required,omitempty"`
	Secret   bool     `json:"secret,omitempty"`
	Choices  []string `json:"choices,omitempty"`
	// Default is what an absent value means, as text.
	Default string `json:"default,omitempty"`

	schemes []string // of a FormatURL; http and https if nil
	members []string // of a FormatDocument: which members are the secret ones
	chosen  bool     // a secret that people make up themselves, by which strangers are believed: a weak one is refused
}

// Alternative is one complete way to fill in a type, besides its required fields. A type that has alternatives needs one
// of them whole; those with When count only if the type's selector has that value.
type Alternative struct {
	When     string   `json:"when,omitempty"`
	Requires []string `json:"requires"`
}

// MCPOAuth is the type of credentials that hold the tokens of a tool server.
const MCPOAuth = "mcp_oauth"

// Type says what a credential of a kind consists of.
type Type struct {
	Name         string        `json:"name"`
	Label        Label         `json:"label"`
	Fields       []Field       `json:"fields"`
	Selector     string        `json:"selector,omitempty"`
	Alternatives []Alternative `json:"alternatives,omitempty"`
}

// Types lists all types by name. The caller owns the result.
func Types() []Type {
	types := slices.Concat(chatTypes(), mailTypes(), vendorTypes(), cloudTypes(), modelTypes(), generalTypes())
	for i, t := range types {
		if !slices.ContainsFunc(t.Fields, func(f Field) bool { return f.Name == "base_url" }) {
			types[i].Fields = append(t.Fields, address("base_url", "接口地址", "Base URL"))
		}
	}
	slices.SortFunc(types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) })
	return types
}

// TypeOf finds a type by name.
func TypeOf(name string) (Type, bool) {
	types := Types()
	if i := slices.IndexFunc(types, func(t Type) bool { return t.Name == name }); i >= 0 {
		return types[i], true
	}
	return Type{}, false
}

// Words of the table: each makes a field, the methods refine it.

func text(name, zh, en string) Field {
	return Field{Name: name, Label: Label{zh, en}, Format: FormatText}
}
func secret(name, zh, en string) Field {
	return Field{Name: name, Label: Label{zh, en}, Format: FormatText, Secret: true}
}
func address(name, zh, en string) Field {
	return Field{Name: name, Label: Label{zh, en}, Format: FormatURL}
}
func choice(name, zh, en string, choices ...string) Field {
	return Field{Name: name, Label: Label{zh, en}, Format: FormatChoice, Choices: choices}
}

func (f Field) required() Field              { f.Required = true; return f }
func (f Field) or(value string) Field        { f.Default = value; return f }
func (f Field) chosenByPeople() Field        { f.chosen = true; return f }
func (f Field) schemed(list ...string) Field { f.schemes = list; return f }

func token() Field  { return secret("token", "访问令牌", "Access token").required() }
func apiKey() Field { return secret("api_key", "API 密钥", "API key") }
func webhookSecret() Field {
	return secret("webhook_secret", "Webhook 密钥", "Webhook secret").chosenByPeople()
}
func username() Field { return text("username", "用户名", "User name") }
func password() Field { return secret("password", "密码", "Password") }

func chatTypes() []Type {
	return []Type{
		{Name: "slack_bot", Label: Label{"Slack 机器人", "Slack bot"}, Fields: []Field{
			token(), secret("signing_secret", "签名密钥", "Signing secret"),
		}},
		{Name: "discord_bot", Label: Label{"Discord 机器人", "Discord bot"}, Fields: []Field{
			token(), text("public_key", "公钥", "Public key"),
		}},
		{Name: "telegram_bot", Label: Label{"Telegram 机器人", "Telegram bot"}, Fields: []Field{token(), webhookSecret()}},
		{Name: "teams_bot", Label: Label{"Microsoft Teams 机器人", "Microsoft Teams bot"}, Fields: []Field{
			text("app_id", "应用 ID", "App ID"), secret("app_secret", "应用密钥", "App secret"),
			text("tenant_id", "租户 ID", "Tenant ID"),
			// Whoever knows the address may post, so all of it is secret.
			{Name: "webhook_url", Label: Label{"Webhook 地址", "Webhook URL"}, Format: FormatURL, Secret: true},
		}, Alternatives: []Alternative{
			{Requires: []string{"app_id", "app_secret", "tenant_id"}}, {Requires: []string{"webhook_url"}},
		}},
	}
}

func mailTypes() []Type {
	server := func(security string, schemes ...string) []Field {
		return []Field{
			text("host", "主机", "Host").required(),
			{Name: "port", Label: Label{"端口", "Port"}, Format: FormatPort},
			choice("security", "加密方式", "Encryption", "starttls", "tls", "none").or(security),
			address("base_url", "接口地址", "Base URL").schemed(schemes...),
		}
	}
	return []Type{
		// Relays inside a network take mail without a login.
		{Name: "smtp", Label: Label{"发信服务器（SMTP）", "Outgoing mail (SMTP)"}, Fields: append(server("starttls", "smtp", "smtps"),
			username(), password(),
		), Alternatives: []Alternative{{Requires: []string{"username", "password"}}, {}}},
		{Name: "imap", Label: Label{"收信服务器（IMAP）", "Incoming mail (IMAP)"}, Fields: append(server("tls", "imap", "imaps"),
			username().required(), password().required(),
			// By these the sender of a reply is believed: what the receiving server calls itself when it says that a mail is
			// genuine, and whether every sender is believed because the server takes mail from known people only.
			text("authserv_id", "验证服务器名", "Name in Authentication-Results"),
			choice("trust_sender", "信任发件人地址", "Trust sender addresses", "no", "yes").or("no"),
		)},
	}
}

func vendorTypes() []Type {
	oauth := func(name, zh, en string) Type {
		return Type{Name: name, Label: Label{zh, en}, Fields: []Field{
			text("client_id", "客户端 ID", "Client ID"), secret("client_secret", "客户端密钥", "Client secret"),
			secret("refresh_token", "刷新令牌", "Refresh token"), secret("token", "访问令牌", "Access token"),
			address("token_url", "令牌地址", "Token URL"),
			text("email", "邮箱", "E-mail address"), // mail servers want to know whose token it is
		}, Alternatives: []Alternative{
			{Requires: []string{"client_id", "client_secret", "refresh_token"}}, {Requires: []string{"token"}},
		}}
	}
	return []Type{
		{Name: "github_token", Label: Label{"GitHub 令牌", "GitHub token"}, Fields: []Field{token(), webhookSecret()}},
		{Name: "gitlab_token", Label: Label{"GitLab 令牌", "GitLab token"}, Fields: []Field{token(), webhookSecret()}},
		// With an e-mail address the token is that of a cloud account, without one that of an own server.
		{Name: "jira", Label: Label{"Jira", "Jira"}, Fields: []Field{
			token(), text("email", "邮箱", "E-mail address"), address("base_url", "站点地址", "Site URL").required(),
		}},
		oauth("google_oauth", "Google 账号", "Google account"),
		oauth("microsoft_oauth", "Microsoft 账号", "Microsoft account"),
		{Name: "trello", Label: Label{"Trello", "Trello"}, Fields: []Field{secret("key", "API 密钥", "API key").required(), token()}},
		{Name: "notion", Label: Label{"Notion", "Notion"}, Fields: []Field{token(), text("notion_version", "API 版本", "API version")}},
		{Name: "caldav", Label: Label{"CalDAV 日历", "CalDAV calendar"}, Fields: []Field{
			address("url", "日历地址", "Calendar URL").required(), username().required(), password().required(),
		}},
	}
}

func cloudTypes() []Type {
	return []Type{
		{Name: "aws_keys", Label: Label{"AWS 访问密钥", "AWS access keys"}, Fields: []Field{
			text("access_key_id", "访问密钥 ID", "Access key ID").required(),
			secret("secret_access_key", "秘密访问密钥", "Secret access key").required(),
			secret("session_token", "会话令牌", "Session token"), text("region", "区域", "Region"),
		}},
		{Name: "gcp_service_account", Label: Label{"Google Cloud 服务账号", "Google Cloud service account"}, Fields: []Field{
			{Name: "key", Label: Label{"密钥 JSON", "Key JSON"}, Format: FormatDocument, Required: true, Secret: true, members: []string{"private_key", "private_key_id"}},
			address("token_uri", "令牌地址", "Token URI"),
		}},
		{Name: "azure", Label: Label{"Azure", "Azure"}, Fields: []Field{
			text("tenant_id", "租户 ID", "Tenant ID"), text("client_id", "客户端 ID", "Client ID"),
			secret("client_secret", "客户端密钥", "Client secret"), text("account_name", "存储账号", "Storage account"),
			secret("account_key", "账号密钥", "Account key"), secret("sas", "共享访问签名", "Shared access signature"),
			secret("connection_string", "连接字符串", "Connection string"), address("token_url", "令牌地址", "Token URL"),
		}, Alternatives: []Alternative{
			{Requires: []string{"tenant_id", "client_id", "client_secret"}}, {Requires: []string{"account_key"}},
			{Requires: []string{"sas"}}, {Requires: []string{"connection_string"}},
		}},
	}
}

func modelTypes() []Type {
	return []Type{
		{Name: "openai", Label: Label{"OpenAI 及兼容服务", "OpenAI and compatible services"}, Fields: []Field{apiKey().required()}},
		{Name: "anthropic", Label: Label{"Anthropic", "Anthropic"}, Fields: []Field{apiKey().required()}},
		{Name: "gemini", Label: Label{"Google Gemini", "Google Gemini"}, Fields: []Field{apiKey().required()}},
	}
}

func generalTypes() []Type {
	return []Type{
		{Name: "sql", Label: Label{"数据库", "Database"}, Fields: []Field{
			choice("driver", "驱动", "Driver", "postgres", "mysql", "sqlite").required(),
			secret("dsn", "连接字符串", "Data source name").required(),
			address("base_url", "接口地址", "Base URL").schemed("http", "https", "tcp"),
		}},
		{Name: "http_auth", Label: Label{"HTTP 认证", "HTTP authentication"}, Selector: "scheme", Fields: []Field{
			choice("scheme", "方式", "Scheme", "bearer", "basic", "header", "query", "oauth2_client").required(),
			secret("token", "访问令牌", "Access token"), username(), password(),
			text("name", "请求头或参数名", "Header or parameter name"), secret("value", "请求头或参数值", "Header or parameter value"),
			text("client_id", "客户端 ID", "Client ID"), secret("client_secret", "客户端密钥", "Client secret"),
			address("token_url", "令牌地址", "Token URL"), {Name: "scopes", Label: Label{"权限范围", "Scopes"}, Format: FormatTexts},
			{Name: "allowed_hosts", Label: Label{"允许的主机", "Allowed hosts"}, Format: FormatTexts},
		}, Alternatives: []Alternative{
			{When: "bearer", Requires: []string{"token"}},
			{When: "basic", Requires: []string{"username", "password"}},
			{When: "header", Requires: []string{"name", "value"}},
			{When: "query", Requires: []string{"name", "value"}},
			{When: "oauth2_client", Requires: []string{"client_id", "client_secret", "token_url"}},
		}},
		// All but the client is written by an authorization; one that is empty is filled by it.
		{Name: MCPOAuth, Label: Label{"MCP 服务器授权", "MCP server authorization"}, Fields: []Field{
			text("client_id", "客户端 ID", "Client ID"), secret("client_secret", "客户端密钥", "Client secret"),
			choice("client_auth", "客户端认证方式", "Client authentication", "basic", "form", "none"), address("issuer", "授权服务器", "Authorization server"),
			text("client_expires", "客户端密钥到期时间", "Client secret expires"),
			secret("token", "访问令牌", "Access token"), secret("refresh_token", "刷新令牌", "Refresh token"),
			address("token_url", "令牌地址", "Token URL"), text("resource", "资源", "Resource"), text("expires", "到期时间", "Expires"),
			{Name: "scopes", Label: Label{"权限范围", "Scopes"}, Format: FormatTexts}, text("redirect_uri", "回调地址", "Redirect URI"),
			{Name: "pending", Label: Label{"进行中的授权", "Authorization under way"}, Format: FormatDocument, Secret: true, members: []string{"state", "verifier"}},
		}},
		{Name: "webhook_secret", Label: Label{"Webhook 密钥", "Webhook secret"}, Fields: []Field{
			secret("secret", "密钥", "Secret").required().chosenByPeople(),
			text("header", "请求头名", "Header name"), text("parameter", "参数名", "Parameter name"),
		}},
		{Name: "service", Label: Label{"服务定义", "Service definition"}, Fields: []Field{
			{Name: "openapi", Label: Label{"OpenAPI 文档", "OpenAPI document"}, Format: FormatDocument},
			{Name: "endpoints", Label: Label{"接口列表", "Endpoints"}, Format: FormatObjects},
			{Name: "auth", Label: Label{"认证", "Authentication"}, Format: FormatAuth, Secret: true},
		}, Alternatives: []Alternative{{Requires: []string{"openapi"}}, {Requires: []string{"endpoints"}}}},
		{Name: "search", Label: Label{"网页搜索", "Web search"}, Selector: "provider", Fields: []Field{
			choice("provider", "服务商", "Provider", "searxng", "brave", "tavily", "bing", "json").required(), apiKey(),
		}, Alternatives: []Alternative{
			{When: "searxng", Requires: []string{"base_url"}}, {When: "brave", Requires: []string{"api_key"}},
			{When: "tavily", Requires: []string{"api_key"}}, {When: "bing", Requires: []string{"api_key"}},
		}},
	}
}
