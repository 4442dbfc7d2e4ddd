// Drives a real browser over the pages of visitors: forms and chats. It is called as `node visit.mjs MODULES`, where MODULES has node_modules. Its first line of
// input is a JSON object {chromium, url, files, shots}; its output is a line {name, error, seconds} for each check, and {do} where it wants something done
// outside, which is answered by a line of input.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [modules] = process.argv.slice(2);
const { chromium: driver } = createRequire(join(modules, "package.json"))("playwright-core");
const axe = readFileSync(join(modules, "node_modules/axe-core/axe.min.js"), "utf8");
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { chromium, url, files, shots, token } = JSON.parse((await lines.next()).value);

let wrong = [];
const blame = (text) => wrong.push(text);
const same = (what, got, want) => JSON.stringify(got) === JSON.stringify(want) || blame(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
const holds = (what, ok) => ok || blame(what);
const say = (value) => process.stdout.write(JSON.stringify(value) + "\n");
const outside = async (what) => {
  say({ do: what });
  return (await lines.next()).value;
};
async function check(name, run) {
  wrong = [];
  const began = Date.now();
  try {
    await run();
  } catch (err) {
    blame(String(err.stack ?? err));
  }
  say({ name, error: wrong.join("\n"), seconds: (Date.now() - began) / 1000 });
}

const browser = await driver.launch({ executablePath: chromium, args: ["--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])] });
const context = (options) => browser.newContext({ locale: "en-GB", viewport: { width: 1180, height: 900 }, ...options });
// open opens a page and blames it for whatever the console says and for what it loads from elsewhere. Down says that the server may be gone for a while.
async function open(where, options, down) {
  const page = await (options?.pages ? options : await context(options)).newPage();
  page.setDefaultTimeout(60000);
  page.on("console", (m) => m.type() === "log" || m.type() === "verbose" || m.type() === "debug" || down?.is || /status of (401|404|409|422|429)/.test(m.text()) || blame(`console: ${m.type()}: ${m.text()}`));
  page.on("pageerror", (err) => blame(`page error: ${err}`));
  page.on("dialog", (d) => {
    blame(`a dialog says ${d.message()}`);
    d.dismiss();
  });
  page.on("request", (r) => holds(`it loads ${r.url()}`, r.url().startsWith(url)));
  await page.goto(url + where);
  return page;
}
// fits says what is too wide, and what axe has against a page.
async function fits(page, name) {
  const out = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  holds(`${name} is ${out} too wide`, out <= 0);
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
}
async function accessible(page, name) {
  await page.evaluate(axe + ";undefined");
  const { violations } = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
  for (const v of violations) blame(`${name}: ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" ")}`);
}
const sends = (page, act) => Promise.all([page.waitForEvent("domcontentloaded"), act()]);
const narrow = { width: 360, height: 740 };

await check("FormWithoutScripts", async () => {
  const page = await open("/forms/form_leave", { javaScriptEnabled: false, viewport: narrow });
  same("heading", await page.getByRole("heading", { level: 1 }).innerText(), "Request for leave");
  await page.getByLabel("Your name (required)").fill("Zoë <b>王</b>");
  await page.getByLabel("Mail address").fill("nobody");
  await page.getByLabel("Days (required)").fill("99");
  await sends(page, () => page.getByRole("button", { name: "Send" }).click());
  const told = await page.getByRole("alert").getByRole("link").allInnerTexts();
  for (const label of ["Mail address", "Kind of leave", "First day", "Days"]) holds(`nothing is said about ${label}: ${told}`, told.some((t) => t.startsWith(label)));
  same("what was typed", await page.getByLabel("Your name (required)").inputValue(), "Zoë <b>王</b>");
  await page.getByLabel("Mail address").fill("zoe@example.org");
  await page.getByLabel("Days (required)").fill("3");
  await page.getByLabel("Kind of leave (required)").selectOption("holiday");
  await page.getByLabel("First day (required)").fill("2027-03-31");
  await page.getByRole("group", { name: "Half days only" }).getByLabel("No").check();
  await page.getByLabel("team").check();
  await page.getByLabel("customers").check();
  const proof = join(files, "proof.txt");
  writeFileSync(proof, "proof: 王");
  await page.getByLabel("Certificate").setInputFiles(proof);
  await sends(page, () => page.getByRole("button", { name: "Send" }).click());
  same("heading", await page.getByRole("heading", { level: 1 }).innerText(), "Thank you");
  const shown = await page.locator("main").innerText();
  for (const part of ["Your request was received.", "Zoë <b>王</b>: 3 days from 2027-03-31 (holiday)"]) holds(`it does not say ${part}: ${shown}`, shown.includes(part));
});

await check("FormLooks", async () => {
  for (const lang of ["en", "zh"]) {
    const page = await open("/forms/form_leave?lang=" + lang, { viewport: narrow });
    await fits(page, `form-${lang}`);
    await accessible(page, `form ${lang}`);
    same("language", await page.locator("html").getAttribute("lang"), lang === "zh" ? "zh-CN" : "en");
    same("button", await page.locator("form button").innerText(), lang === "zh" ? "提交" : "Send");
  }
  const page = await open("/forms/form_leave", { locale: "zh-CN" });
  same("the language of the reader", await page.locator("form button").innerText(), "提交");
});

await check("ChatStreams", async () => {
  const page = await open("/chat/stream", { viewport: narrow });
  const answer = page.locator("article.said").last();
  await page.getByLabel("Your message").fill("Tell me");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("one two", { exact: false }).waitFor();
  holds(`it is not being said: ${await answer.innerText()}`, !(await page.locator("#log").innerText()).includes("three"));
  await outside("release");
  await page.getByText("one two three <i>four</i>", { exact: false }).waitFor();
  same("nothing of it is markup", await page.locator("#log i").count(), 0);
  await fits(page, "chat-phone");
  await accessible(page, "chat");
});

await check("ChatSurvivesAKill", async () => {
  const down = { is: false };
  const visitor = await context();
  const page = await open("/chat/chat_shop", visitor, down);
  await page.getByText("Hello! What can we do for you?").waitFor();
  const write = async (text) => {
    await page.getByLabel("Your message").fill(text);
    await page.keyboard.press("Enter");
  };
  await write("My name is Ada");
  await page.getByText("Nice to meet you, Ada. I shall remember it.").waitFor();
  await write("I want to return a drill");
  await page.getByRole("heading", { name: "Which order is it about?" }).waitFor();
  await accessible(page, "chat with a question");
  await page.getByLabel("Order number (required)").fill("abc");
  await page.locator("article.question").getByRole("button", { name: "Send" }).click();
  await page.getByRole("alert").getByText("Order number").waitFor();
  await page.locator("article.question").getByText("Only the digits").first().waitFor();

  down.is = true;
  await outside("kill");
  await page.getByLabel("Order number (required)").fill("4711");
  await page.getByLabel("Reason (required)").selectOption("broken");
  const clicked = page.locator("article.question").getByRole("button", { name: "Send" }).click();
  await outside("start");
  await clicked;
  await page.getByText("order 4711, broken", { exact: false }).waitFor();
  await page.getByText("You may return a tool within 30 days", { exact: false }).waitFor();
  down.is = false;

  await page.reload();
  await page.getByText("order 4711, broken", { exact: false }).waitFor();
  const said = await page.locator("#log").innerText();
  for (const part of ["My name is Ada", "Nice to meet you, Ada", "I want to return a drill", "Which order is it about?", "4711"]) holds(`it does not say ${part} any more: ${said}`, said.includes(part));
  await write("What is my name?");
  await page.getByText("user: My name is Ada", { exact: false }).waitFor();

  // A message that is written while the server is down gets there once.
  down.is = true;
  await outside("kill");
  await write("Do you sell paint?");
  await page.getByText("The connection is interrupted").waitFor();
  await outside("start");
  await page.getByText('I have heard: "Do you sell paint?"', { exact: false }).waitFor();
  down.is = false;

  // Whoever else looks has a conversation of their own.
  const other = await open("/chat/chat_shop");
  await other.getByText("Hello! What can we do for you?").waitFor();
  await other.getByLabel("Your message").fill("What is my name?");
  await other.keyboard.press("Enter");
  await other.getByText("We have not spoken before", { exact: false }).waitFor();
  holds("another visitor sees the conversation", !(await other.locator("#log").innerText()).includes("Ada"));

  await page.getByRole("button", { name: "New conversation" }).click();
  await page.getByText("Hello! What can we do for you?").waitFor();
  await page.waitForFunction(() => !document.getElementById("log").innerText.includes("Ada"));
});

await check("ChatInChinese", async () => {
  const page = await open("/chat/chat_shop", { locale: "zh-CN", viewport: narrow });
  await page.getByLabel("您的消息").fill("我要退货 <img src=x onerror=alert(1)>");
  await page.getByRole("button", { name: "提交" }).click();
  await page.getByText("Which order is it about?").waitFor();
  await page.getByText("（必填）").first().waitFor();
  await fits(page, "chat-zh-question");
  same("pictures", await page.locator("#log img").count(), 0);
  await page.locator("article.question").getByRole("button", { name: "提交" }).click();
  await page.getByText("请检查以下内容").waitFor();
});

await check("RunPage", async () => {
  const page = await open("/run/run_me", { viewport: narrow });
  await page.getByLabel("Token").fill(token);
  await sends(page, () => page.getByRole("button", { name: "Log in" }).click());
  same("where the login leads", new URL(page.url()).pathname, "/run/run_me");
  await fits(page, "run");
  await page.getByLabel("Amount (required)").fill("x");
  await sends(page, () => page.getByRole("button", { name: "Start" }).click());
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Amount (required)").fill("12");
  await sends(page, () => page.getByRole("button", { name: "Start" }).click());
  const shown = await page.locator("main").innerText();
  for (const part of ["SUCCESS", "amount: 12"]) holds(`it does not say ${part}: ${shown}`, shown.includes(part));
});

await browser.close();
process.exit(0);
