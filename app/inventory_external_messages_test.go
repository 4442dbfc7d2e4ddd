package app

import "maps"

// messageProofs are those of the kinds that send messages to people and programs.
func messageProofs() map[string]map[string]proof {
	mail := sentTo("integration/mail.TestAction_Send",
		"action_type", "from", "to", "cc", "bcc", "reply_to", "subject", "body_text", "body_html", "attachments")
	maps.Copy(mail, sentTo("integration/mail.TestAction_BodyOfTheInput", "data"))
	maps.Copy(mail, sentTo("integration/mail.TestAction_Reply", "email_id", "body", "reply_all"))
	maps.Copy(mail, sentTo("integration/mail.TestAction_Mailbox", "imap_credential_id", "mailbox", "source_mailbox", "seen", "flagged", "since", "unseen"))
	maps.Copy(mail, sentTo("integration/mail.TestAction_SearchPages", "limit", "cursor"))
	maps.Copy(mail, sentTo("integration/mail.TestAction_Inquire", "sent_mailbox"))
	notice := sentTo("TestNotification", "channels", "channels.type", "channels.to", "channels.credential_id", "title", "message", "require")
	maps.Copy(notice, sentTo("TestNotification_LostMail", "channels.imap_credential_id", "channels.sent_mailbox"))
	return map[string]map[string]proof{
		"EXTERNAL_ACTION.WEBHOOK":      sentTo("integration/webhook.TestSend_Deliveries", "url", "event", "method", "headers", "payload"),
		"EXTERNAL_ACTION.EMAIL":        mail,
		"EXTERNAL_ACTION.NOTIFICATION": notice,
		"EXTERNAL_ACTION.DISCORD_ACTION": sentTo("integration/discord.TestAction_Operations",
			"action_type", "data", "server_id", "channel_id", "message_content", "embed_config", "allowed_mentions", "file", "message_id", "reaction_emoji", "target_user_id",
			"role_id", "action", "reason", "name", "type", "before", "after", "method", "path", "query", "body", "limit", "cursor"),
		"EXTERNAL_ACTION.TELEGRAM_ACTION": sentTo("integration/telegram.TestAction_Operations",
			"action_type", "data", "chat_id", "message_text", "parse_mode", "keyboard_config", "file", "caption", "question", "options", "from_chat_id", "message_id", "user_id",
			"disable_notification", "method", "path", "query", "body"),
	}
}
