package n8n

import (
	"cmp"
	"strings"

	"tandem/importer"
	"tandem/text"
)

// mention is a name of a channel as Slack takes it.
func mention(words, prefix string) string {
	if words == "" || strings.HasPrefix(words, prefix) || strings.Contains(words, "{{") || strings.ToUpper(words) == words {
		return words
	}
	return prefix + words
}

// slack posts messages.
func slack(m *making) bool {
	p := m.n.params
	resource, operation := cmp.Or(p.At("resource").Text(), "message"), cmp.Or(p.At("operation").Text(), "post")
	channel := func() {
		words := mention(m.text(p.First("channelId", "channel")), "#")
		if p.At("select").Text() == "user" || p.At("user").Exists() && !p.First("channelId", "channel").Exists() {
			words = mention(m.text(p.At("user")), "@")
		}
		if words != "" {
			m.cfg["channel"] = words
		}
	}
	channel()
	switch resource + "." + operation {
	case "message.post", "message.postEphemeral":
		m.cfg["action_type"] = "send_message"
		m.put("message", p.First("text", "blocksUi"))
		if m.cfg["channel"] == nil {
			m.cfg["channel"] = "#general"
			m.line.Approximate(text.Of("it names no channel; #general was written"))
		}
		if blocks := p.At("blocksUi"); blocks.Exists() && p.At("messageType").Text() == "block" {
			if list, ok := m.jsonText(blocks).(map[string]any); ok && list["blocks"] != nil {
				m.cfg["blocks"], m.cfg["message_format"] = list["blocks"], "blocks"
			}
		}
		if m.cfg["message"] == nil && m.cfg["blocks"] == nil {
			m.cfg["message"] = "-"
			m.line.Approximate(text.Of("it has no text; write one"))
		}
		if s, ok := m.cfg["message"].(string); !ok && m.cfg["message"] != nil {
			m.cfg["message"] = importer.ValueOf(m.cfg["message"]).Written()
		} else {
			m.cfg["message"] = s
		}
		if len(p.At("attachments").List()) > 0 {
			m.line.Approximate(text.Of("attachments were left out"))
		}
	case "message.update":
		m.cfg["action_type"] = "update_message"
		m.put("message", p.At("text"))
		m.put("message_ts", p.At("ts"))
	case "message.delete":
		m.cfg["action_type"] = "delete_message"
		m.put("message_ts", p.First("ts", "timestamp"))
	case "channel.create":
		m.cfg["action_type"] = "create_channel"
		delete(m.cfg, "channel")
		m.put("name", p.First("channelId", "channel"))
	case "channel.archive":
		m.cfg["action_type"] = "archive_channel"
	case "channel.setTopic":
		m.cfg["action_type"] = "set_channel_topic"
		m.put("topic", p.At("topic"))
	case "channel.history":
		m.cfg["action_type"] = "get_channel_history"
	case "reaction.add":
		m.cfg["action_type"] = "add_reaction"
		m.put("message_ts", p.At("timestamp"))
		m.put("emoji", p.At("name"))
	case "user.info":
		m.cfg["action_type"] = "get_user_info"
		delete(m.cfg, "channel")
		m.put("user", p.At("user"))
	default:
		return false
	}
	return true
}

// telegram sends messages.
func telegram(m *making) bool {
	p := m.n.params
	m.put("chat_id", p.At("chatId"))
	switch cmp.Or(p.At("resource").Text(), "message") + "." + cmp.Or(p.At("operation").Text(), "sendMessage") {
	case "message.sendMessage":
		m.cfg["action_type"] = "send_message"
		m.put("message_text", p.At("text"))
		if mode := p.At("additionalFields", "parse_mode").Text(); mode != "" {
			m.cfg["parse_mode"] = mode
		}
		if p.At("replyMarkup").Text() != "" && p.At("replyMarkup").Text() != "none" {
			m.line.Approximate(text.Of("buttons were left out; write them into keyboard_config"))
		}
	case "message.sendPhoto", "message.sendDocument", "message.sendVideo":
		m.cfg["action_type"] = map[string]string{"sendPhoto": "send_photo", "sendDocument": "send_document",
			"sendVideo": "send_video"}[p.At("operation").Text()]
		m.put("file", p.At("file"))
		m.put("caption", p.At("additionalFields", "caption"))
		if m.cfg["file"] == nil {
			m.cfg["file"] = "{{" + m.json.at([]string{cmp.Or(p.At("binaryPropertyName").Text(), "data")}) + "}}"
			m.line.Approximate(text.Of("set the field file to one that a node has made"))
		}
	case "message.editMessageText":
		m.cfg["action_type"] = "edit_message"
		m.put("message_id", p.At("messageId"))
		m.put("message_text", p.At("text"))
	case "message.deleteMessage":
		m.cfg["action_type"] = "delete_message"
		m.put("message_id", p.At("messageId"))
	case "message.pinChatMessage":
		m.cfg["action_type"] = "pin_message"
		m.put("message_id", p.At("messageId"))
	default:
		return false
	}
	return true
}

// discord sends messages.
func discord(m *making) bool {
	p := m.n.params
	if op := cmp.Or(p.At("operation").Text(), "send"); cmp.Or(p.At("resource").Text(), "message") != "message" || op != "send" {
		return false
	}
	m.cfg["action_type"] = "send_message"
	m.put("server_id", p.At("guildId"))
	m.put("channel_id", p.At("channelId"))
	m.put("message_content", p.First("content", "text"))
	if m.cfg["server_id"] == nil {
		m.cfg["server_id"] = "{{env.DISCORD_SERVER_ID}}"
		m.line.Approximate(text.Of("it names no server and no channel; set them"))
	}
	return true
}

// mail sends mails.
func mail(m *making) bool {
	p := m.n.params
	m.cfg["action_type"] = "send"
	m.put("from", p.At("fromEmail"))
	m.put("to", p.First("toEmail", "toRecipients"))
	m.put("cc", p.First("ccEmail"))
	m.put("bcc", p.First("bccEmail"))
	m.put("subject", p.At("subject"))
	m.put("body_text", p.At("text"))
	m.put("body_html", p.At("html"))
	for _, list := range []string{"to", "cc", "bcc"} {
		if s, ok := m.cfg[list].(string); ok {
			var all []any
			for _, one := range strings.Split(s, ",") {
				all = append(all, strings.TrimSpace(one))
			}
			m.cfg[list] = all
		}
	}
	if m.cfg["body_text"] == nil && m.cfg["body_html"] == nil {
		m.cfg["body_text"] = " "
	}
	for _, name := range []string{"to", "subject"} {
		if m.cfg[name] == nil {
			m.cfg[name] = map[string]any{"to": []any{"{{env.MAIL_TO}}"}, "subject": "-"}[name]
			m.line.Approximate(text.Of("the field %q is empty; set it", name))
		}
	}
	return true
}

// gmail sends mails; the rest of it is called over HTTP.
func gmail(m *making) bool {
	p := m.n.params
	if cmp.Or(p.At("resource").Text(), "message") != "message" || cmp.Or(p.At("operation").Text(), "send") != "send" {
		return false
	}
	m.cfg["action_type"] = "send"
	m.put("to", p.First("sendTo", "toList"))
	m.put("subject", p.At("subject"))
	body := "body_html"
	if p.At("emailType").Text() == "text" {
		body = "body_text"
	}
	m.put(body, p.First("message", "htmlMessage"))
	return m.sent()
}

// outlook sends mails; the rest of it is called over HTTP.
func outlook(m *making) bool {
	p := m.n.params
	if cmp.Or(p.At("resource").Text(), "message") != "message" || cmp.Or(p.At("operation").Text(), "send") != "send" {
		return false
	}
	m.cfg["action_type"] = "send"
	m.put("to", p.At("toRecipients"))
	m.put("subject", p.At("subject"))
	m.put("body_html", p.At("bodyContent"))
	return m.sent()
}

// sent says that a mail goes out by SMTP.
func (m *making) sent() bool {
	if s, ok := m.cfg["to"].(string); ok {
		m.cfg["to"] = []any{s}
	}
	for name, otherwise := range map[string]any{"to": []any{"{{env.MAIL_TO}}"}, "subject": "-"} {
		if m.cfg[name] == nil {
			m.cfg[name] = otherwise
			m.line.Approximate(text.Of("the field %q is empty; set it", name))
		}
	}
	if m.cfg["body_text"] == nil && m.cfg["body_html"] == nil {
		m.cfg["body_text"] = " "
	}
	m.line.Approximate(text.Of("mails go out by SMTP; make a credential for it"))
	return true
}

// github works on a repository.
func github(m *making) bool {
	p := m.n.params
	m.cfg["repository_config"] = map[string]any{"owner": m.text(p.At("owner")), "repo": m.text(p.At("repository"))}
	switch cmp.Or(p.At("resource").Text(), "issue") + "." + cmp.Or(p.At("operation").Text(), "create") {
	case "issue.create":
		m.cfg["action_type"] = "create_issue"
		m.put("title", p.At("title"))
		m.put("body", p.At("body"))
	case "issue.createComment":
		m.cfg["action_type"] = "add_issue_comment"
		m.put("issue_number", p.At("issueNumber"))
		m.put("comment", p.At("body"))
	case "issue.edit":
		m.cfg["action_type"] = "update_issue"
		m.put("issue_number", p.At("issueNumber"))
	case "file.get":
		m.cfg["action_type"] = "get_file_content"
		m.put("path", p.At("filePath"))
	case "file.create", "file.edit":
		m.cfg["action_type"] = map[bool]string{true: "update_file", false: "create_file"}[p.At("operation").Text() == "edit"]
		m.put("path", p.At("filePath"))
		m.put("content", p.At("fileContent"))
		m.put("commit_message", p.At("commitMessage"))
	case "release.create":
		m.cfg["action_type"] = "create_release"
		m.put("tag_name", p.At("releaseTag"))
	case "repository.getIssues":
		m.cfg["action_type"] = "list_issues"
	default:
		return false
	}
	m.line.Approximate(text.Of("what it hands on has the fields of the kind, and not those of n8n"))
	return true
}

// gitlab works on a project.
func gitlab(m *making) bool {
	p := m.n.params
	m.cfg["project"] = m.text(p.At("owner")) + "/" + m.text(p.At("repository"))
	switch cmp.Or(p.At("resource").Text(), "issue") + "." + cmp.Or(p.At("operation").Text(), "create") {
	case "issue.create":
		m.cfg["action_type"] = "create_issue"
		m.put("title", p.At("title"))
		m.put("description", p.At("body"))
	case "issue.createComment":
		m.cfg["action_type"] = "add_issue_comment"
		m.put("issue_iid", p.At("issueNumber"))
		m.put("body", p.At("body"))
	default:
		return false
	}
	m.line.Approximate(text.Of("what it hands on has the fields of the kind, and not those of n8n"))
	return true
}

// jira works on issues.
func jira(m *making) bool {
	p := m.n.params
	switch cmp.Or(p.At("resource").Text(), "issue") + "." + cmp.Or(p.At("operation").Text(), "create") {
	case "issue.create":
		m.cfg["action_type"] = "create_issue"
		m.put("project_key", p.At("project"))
		m.put("summary", p.At("summary"))
		m.put("description", p.At("additionalFields", "description"))
		if name := p.At("issueType", "cachedResultName").Text(); name != "" {
			m.cfg["issue_type"] = name
		}
		if m.cfg["summary"] == nil {
			m.cfg["summary"] = "-"
		}
		if m.cfg["project_key"] == nil {
			m.cfg["project_key"] = "{{env.JIRA_PROJECT}}"
			m.line.Approximate(text.Of("the field %q is empty; set it", "project_key"))
		}
	case "issue.get":
		m.cfg["action_type"] = "get_issue"
		m.put("issue_key", p.At("issueKey"))
	case "issue.getAll":
		m.cfg["action_type"] = "search_issues"
		m.put("jql", p.At("options", "jql"))
	case "issue.update":
		m.cfg["action_type"] = "update_issue"
		m.put("issue_key", p.At("issueKey"))
		m.cfg["fields"] = m.value(p.At("updateFields"))
	case "issueComment.add":
		m.cfg["action_type"] = "add_comment"
		m.put("issue_key", p.At("issueKey"))
		m.put("body", p.At("comment"))
	default:
		return false
	}
	m.line.Approximate(text.Of("what it hands on has the fields of the kind, and not those of n8n"))
	return true
}

// trello works on cards.
func trello(m *making) bool {
	p := m.n.params
	switch cmp.Or(p.At("resource").Text(), "card") + "." + cmp.Or(p.At("operation").Text(), "create") {
	case "card.create":
		m.cfg["action_type"] = "create_card"
		m.put("list_id", p.At("listId"))
		m.put("name", p.At("name"))
		m.put("desc", p.At("description"))
	case "card.get":
		m.cfg["action_type"] = "get_card"
		m.put("card_id", p.At("id"))
	case "card.delete":
		m.cfg["action_type"] = "delete_card"
		m.put("card_id", p.At("id"))
	case "list.getCards":
		m.cfg["action_type"] = "list_cards"
		m.put("list_id", p.At("id"))
	case "cardComment.create":
		m.cfg["action_type"] = "add_comment"
		m.put("card_id", p.At("cardId"))
		m.put("text", p.At("text"))
	default:
		return false
	}
	m.line.Approximate(text.Of("what it hands on has the fields of the kind, and not those of n8n"))
	return true
}

// notion works on pages.
func notion(m *making) bool {
	p := m.n.params
	switch cmp.Or(p.At("resource").Text(), "page") + "." + cmp.Or(p.At("operation").Text(), "create") {
	case "databasePage.create":
		m.cfg["action_type"] = "create_database_item"
		m.put("database_id", p.At("databaseId"))
		properties := m.properties()
		if title := m.text(p.At("title")); title != "" {
			properties["Name"] = title
		}
		m.cfg["properties"] = properties
	case "databasePage.update":
		m.cfg["action_type"] = "update_database_item"
		m.put("page_id", p.At("pageId"))
		m.cfg["properties"] = m.properties()
	case "databasePage.getAll":
		m.cfg["action_type"] = "query_database"
		m.put("database_id", p.At("databaseId"))
	case "databasePage.get", "page.get":
		m.cfg["action_type"] = "get_page"
		m.put("page_id", p.At("pageId"))
	case "page.archive":
		m.cfg["action_type"] = "archive_page"
		m.put("page_id", p.At("pageId"))
	case "page.search":
		m.cfg["action_type"] = "search"
		m.put("query", p.At("text"))
	case "block.getAll":
		m.cfg["action_type"] = "get_blocks"
		m.put("page_id", p.At("blockId"))
	default:
		return false
	}
	m.line.Approximate(text.Of("what it hands on has the fields of the kind, and not those of n8n"))
	return true
}
