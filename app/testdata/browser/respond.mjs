// Drives a real browser over the response pages. It is called as `node respond.mjs MODULES`, where MODULES has node_modules; its input is a JSON
// object {chromium, links, shots, files, long}, its output a line {name, error, seconds} for each check.
//
// People answer in a browser without scripts, in which nothing of the page itself may need any. What a page looks like is measured in another
// one, which may run the measuring code.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const [modules] = process.argv.slice(2);
const { chromium: driver } = createRequire(join(modules, "package.json"))("playwright-core");
const axe = readFileSync(join(modules, "node_modules/axe-core/axe.min.js"), "utf8");
const { chromium, links, shots, files, long } = JSON.parse(readFileSync(0, "utf8"));

const narrow = { width: 360, height: 740 };
const wide = { width: 1180, height: 900 };

// What is wrong with the check that runs now.
let wrong = [];
const blame = (text) => wrong.push(text);
const same = (what, got, want) => JSON.stringify(got) === JSON.stringify(want) || blame(`${what}: ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
const holds = (what, ok) => ok || blame(what);

async function check(name, run) {
  wrong = [];
  const began = Date.now();
  try {
    await run();
  } catch (err) {
    blame(String(err.stack ?? err));
  }
  process.stdout.write(JSON.stringify({ name, error: wrong.join("\n"), seconds: (Date.now() - began) / 1000 }) + "\n");
}

// watch blames a page for whatever the console says, for what was refused, and for anything it loads besides itself.
function watch(page, mayFail) {
  page.setDefaultTimeout(60000);
  page.on("console", (m) => {
    // A page that says 410 or 422 is told of by the console, and is right.
    if (m.type() !== "log" && !/the server responded with a status of (404|409|410|413|422)/.test(m.text())) blame(`console: ${m.type()}: ${m.text()}`);
  });
  page.on("pageerror", (err) => blame(`page error: ${err}`));
  page.on("requestfailed", (r) => mayFail || blame(`blocked: ${r.url()}: ${r.failure()?.errorText}`));
  page.on("request", (r) => {
    const own = new URL(Object.values(links)[0]).origin + "/respond/";
    holds(`it loads ${r.resourceType()} ${r.url()}`, r.url().startsWith(own) && r.isNavigationRequest());
  });
  return page;
}

const browser = await driver.launch({
  executablePath: chromium,
  args: ["--disable-gpu", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])],
});
const people = await browser.newContext({ javaScriptEnabled: false, locale: "en-GB", viewport: wide });
const measuring = await browser.newContext({ locale: "en-GB", viewport: wide });
await measuring.addInitScript(() => {
  globalThis.violations = [];
  document.addEventListener("securitypolicyviolation", (e) => globalThis.violations.push(`${e.violatedDirective} ${e.blockedURI}`));
});
const page = watch(await people.newPage());
const gauge = watch(await measuring.newPage());

const open = async (name, query = "") => (await page.goto(links[name] + query)).status();
const label = (text) => page.getByLabel(text, { exact: true });
// sends does what sends a form and waits for the page that answers it, so that nothing is read of the page before.
const sends = (act, tab = page) => Promise.all([tab.waitForEvent("domcontentloaded"), act()]);
const press = (name) => sends(() => page.getByRole("button", { name, exact: true }).click());
const heading = () => page.getByRole("heading", { level: 1 }).innerText();
const text = () => page.locator("main").innerText();
const says = async (...parts) => {
  const shown = await text();
  for (const part of parts) holds(`the page does not say ${JSON.stringify(part)}:\n${shown}`, shown.includes(part));
};
const recorded = async (...parts) => {
  same("heading", await heading(), "Your answer was recorded");
  same("forms left", await page.locator("form").count(), 0);
  await says(...parts);
};

// --- measuring -------------------------------------------------------------------------------------------------------

// looks runs in the page: text that can hardly be read, controls whose edge can hardly be seen, and what is too wide or too small to touch.
function looks() {
  const channels = (text) => {
    const m = text.match(/rgba?\(([^)]+)\)/);
    if (!m) throw new Error(`the colour ${text} cannot be read`);
    const [r, g, b, a = 1] = m[1].split(/[ ,/]+/).map(Number);
    return [r, g, b, a];
  };
  const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const behind = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const colour = channels(getComputedStyle(e).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  };
  const found = [];
  const words = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n = words.nextNode(); n; n = words.nextNode()) {
    const e = n.parentElement;
    if (!n.data.trim() || e.closest("option, .away") || e.getClientRects().length === 0) continue;
    const ground = behind(e);
    const ratio = contrast(over(channels(getComputedStyle(e).color), ground), ground);
    if (ratio < 4.5) found.push(`text ${JSON.stringify(n.data.trim().slice(0, 40))} has a contrast of ${ratio.toFixed(2)}`);
  }
  for (const e of document.querySelectorAll("input:not([type=hidden]), textarea, select, button")) {
    const style = getComputedStyle(e);
    const ground = behind(e);
    if (e.value && contrast(channels(style.color), ground) < 4.5) found.push(`what is typed into ${e.id} can hardly be read`);
    const box = e.closest("label.choice") ?? e;
    const { width, height } = box.getBoundingClientRect();
    if (height < 44 || width < 44) found.push(`${e.id || e.innerText} is too small to touch: ${width} by ${height}`);
    if (e.matches("[type=radio], [type=checkbox]")) continue;
    const edge = Math.max(contrast(channels(style.borderTopColor), behind(e.parentElement)), contrast(ground, behind(e.parentElement)));
    if (edge < 3) found.push(`the edge of ${e.id || e.innerText} has a contrast of ${edge.toFixed(2)}`);
  }
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    const out = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > root.clientWidth + 1);
    found.push(`it is ${root.scrollWidth} wide and has ${root.clientWidth}: ${out.map((e) => e.outerHTML.slice(0, 60)).slice(0, 3)}`);
  }
  return found.concat((globalThis.violations ?? []).map((v) => `the policy was violated: ${v}`));
}

// measure looks at the page that the measuring browser shows, in all the ways it is shown to people.
async function measure(name) {
  // Colours do not depend on the width, so each scheme is measured at one of them, unless somebody wants to look.
  for (const [size, viewport, schemes] of [["phone", narrow, shots ? ["light", "dark"] : ["light"]], ["desk", wide, shots ? ["light", "dark"] : ["dark"]]]) {
    await gauge.setViewportSize(viewport);
    for (const colorScheme of schemes) {
      await gauge.emulateMedia({ colorScheme });
      const at = `${name} ${size} ${colorScheme}`;
      for (const found of await gauge.evaluate(looks)) blame(`${at}: ${found}`);
      if (shots) await gauge.screenshot({ path: join(shots, `${at.replaceAll(" ", "-")}.png`), fullPage: true });
    }
  }
  same(`${name}: language`, await gauge.locator("html").getAttribute("lang"), new URL(gauge.url()).searchParams.get("lang") === "zh" ? "zh-CN" : "en");
  await gauge.evaluate(axe + ";undefined");
  // looks has measured every contrast, and asks for more of it than axe does
  const { violations } = await gauge.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], rules: { "color-contrast": { enabled: false } } }));
  for (const v of violations) blame(`${name}: ${v.id}: ${v.help}: ${v.nodes.map((n) => n.html.slice(0, 120)).join(" ")}`);
}

const look = async (name, query = "") => {
  await gauge.goto(links[name] + query);
  await measure(name + query.replace("?lang=", "-"));
};
// lookWrong sends the form as it is, which is refused and uses up nothing.
const lookWrong = async (name, query = "") => {
  await gauge.goto(links[name] + query);
  await sends(() => gauge.locator("form button").last().click(), gauge);
  holds(`${name}: no summary`, await gauge.getByRole("alert").isVisible());
  await measure(name + query.replace("?lang=", "-") + "-wrong");
};

// --- the checks ------------------------------------------------------------------------------------------------------

// Many pages are made of the same parts. Each part is looked at once, in the long form (`make test-long`) each page; what is wrong with a form is told on
// the page of the form, so that one is the page of both.
await check("Looks", async () => {
  for (const name of ["approve", "many", "numeric", "checklist", "tool", "long", "expired"]) await look(name);
  await look("chinese", "?lang=zh");
  if (!long && !shots) return;
  for (const name of ["options", "form", "schema", "pass_fail", "ended"]) await look(name);
  for (const name of ["form", "pass_fail", "expired"]) await look(name, "?lang=zh");
});

await check("LooksWhenWrong", async () => {
  for (const name of ["form", "schema", "pass_fail"]) await lookWrong(name);
  await lookWrong("form", "?lang=zh");
  if (!long && !shots) return;
  await lookWrong("one");
  await lookWrong("schema", "?lang=zh");
});

await check("Approval", async () => {
  same("status", await open("approve"), 200);
  same("heading", await heading(), "Pay the invoice of Example & Sons?");
  await says("It came on Monday and is due on Friday.\nThe order was placed", "High risk", "€ 12,480.00", "Example & Sons <Ltd>", "operator", "Office matters", "Lamps", "Answer by", "UTC");
  same("buttons", await page.getByRole("button").allInnerTexts(), ["Approve", "Reject"]);
  await label("Notes (optional)").fill("Checked with <b>finance</b>.\nAll fine.");
  await press("Approve");
  await recorded("Pay the invoice", "Approve", "Checked with <b>finance</b>.\nAll fine.", "You may close this page");
});

await check("Options", async () => {
  await open("options");
  await says("Medium risk");
  same("buttons", await page.getByRole("button").allInnerTexts(), ["Ship what is there", "Wait for the rest", "Cancel the order"]);
  await press("Wait for the rest");
  await recorded("Wait for the rest");
});

await check("KeyboardOnly", async () => {
  await open("keyboard");
  const focused = () => page.evaluate(() => ({ what: document.activeElement.innerText || document.activeElement.id, ring: getComputedStyle(document.activeElement).outlineStyle !== "none" }));
  const order = [];
  for (let n = 0; n < 4; n++) {
    await page.keyboard.press("Tab");
    const at = await focused();
    order.push(at.what);
    holds(`${at.what} does not show that it has the focus`, at.ring);
    if (at.what === "q0") await page.keyboard.type("typed");
  }
  same("order", order, ["中文", "q0", "Approve", "Reject"]);
  await sends(() => page.keyboard.press("Enter"));
  await recorded("Reject", "typed");
});

await check("Form", async () => {
  await open("form");
  await label("Full name (required)").fill("Zo");
  await label("Budget in euro (required)").fill("12000");
  await label("Work mail (required)").fill("nobody");
  await label("First day (required)").fill("2027-03-31");
  await label("Desk (required)").selectOption({ label: "North, by the window" });
  await label("Cost centre").fill("eu42");
  const paper = join(files, "contract.txt");
  writeFileSync(paper, "signed: 王");
  await label("Signed contract (required)").setInputFiles(paper);
  await press("Send");
  const summary = page.getByRole("alert");
  const told = await summary.getByRole("link").allInnerTexts();
  for (const [name, part] of Object.entries({ "Full name": "", "Budget in euro": "5000", "Work mail": "", "Works from home": "", "Cost centre": "Two capital letters" }))
    holds(`the summary has no ${name} with ${part}: ${told}`, told.some((t) => t.startsWith(name) && t.includes(part)));
  same("how many are wrong", told.length, 5);
  holds("the title does not say that something is wrong", (await page.title()).startsWith("Error: "));
  same("what was typed", [await label("Full name (required)").inputValue(), await label("Budget in euro (required)").inputValue(), await label("Work mail (required)").inputValue(), await label("First day (required)").inputValue(), await label("Desk (required)").inputValue(), await label("Cost centre").inputValue()], ["Zo", "12000", "nobody", "2027-03-31", "n", "eu42"]);
  await says("Received: contract.txt");
  for (const [link, id] of [["Work mail", "Work mail (required)"], ["Cost centre", "Cost centre"]]) {
    await summary.getByRole("link", { name: link }).click();
    holds(`the link of ${link} does not lead to it`, await label(id).evaluate((e) => e === document.activeElement));
    const said = await label(id).evaluate((e) => e.getAttribute("aria-describedby").split(" ").map((d) => document.getElementById(d).innerText).join(" "));
    holds(`${link} does not say what is wrong with it: ${said}`, said.length > 8 && (await label(id).getAttribute("aria-invalid")) === "true");
  }
  await summary.getByRole("link", { name: "Works from home" }).click();
  holds("the link does not lead to the choice", await page.getByRole("group", { name: /Works from home/ }).evaluate((e) => e.contains(document.activeElement)));
  await label("Full name (required)").fill("Zoë 王");
  await label("Budget in euro (required)").fill("1200.5");
  await label("Work mail (required)").fill("zoe@example.org");
  await label("Cost centre").fill("EU-42");
  await page.getByRole("group", { name: /Works from home/ }).getByLabel("No").check();
  await sends(() => label("Cost centre").press("Enter"));
  await recorded("Zoë 王", "1200.5", "North, by the window", "contract.txt", "2027-03-31", "EU-42");
});

await check("Schema", async () => {
  await open("schema");
  const shown = await text();
  holds("strangers learn who works here", !shown.includes("operator") && !shown.includes("ann"));
  same("default", await label("Guests").inputValue(), "0");
  await label("Guests").fill("9");
  await press("Send");
  const told = (await page.getByRole("alert").innerText()).split("\n");
  holds(`not everything is told: ${told}`, ["T-shirt", "Guests", "What interests you"].every((name) => told.some((t) => t.startsWith(name))));
  await label("T-shirt (required)").selectOption("M");
  await label("Guests").fill("2");
  await page.getByRole("group", { name: "Vegan menu" }).getByLabel("Yes").check();
  for (const topic of ["Go", "Design"]) await label(topic).check();
  await press("Send");
  await recorded("M", "Go, Design", "Yes");
});

await check("Selection", async () => {
  await open("one");
  await press("Send");
  same("wrong", await page.getByRole("alert").getByRole("link").count(), 1);
  await label("Near the station").check();
  await label("At the lake").check();
  same("only one", await label("Near the station").isChecked(), false);
  await press("Send");
  await recorded("At the lake");
  await open("many");
  await says("You may choose several.");
  for (const name of ["Legal", "Press"]) await label(name).check();
  await label("Notes (optional)").fill("not finance");
  await press("Send");
  await recorded("Legal, Press", "not finance");
});

const score = (criterion, value) => page.getByRole("group", { name: criterion }).getByLabel(value, { exact: true }).check();

await check("Reviews", async () => {
  await open("pass_fail");
  await score("Clear and complete", "Pass");
  await press("Send");
  same("wrong", await page.getByRole("alert").getByRole("link").count(), 3);
  holds("what was chosen is gone", await page.getByRole("group", { name: "Clear and complete" }).getByLabel("Pass").isChecked());
  await score("No secrets", "Fail");
  await label("Evidence for “Clear and complete” (required)").fill("Nothing is missing.");
  await label("Evidence for “No secrets” (required)").fill("A key is on page 2.");
  await press("Send");
  await recorded("Pass", "Fail", "A key is on page 2.");

  await open("numeric");
  await says("From 1 to 5.");
  await score("Clear and complete", "4");
  await score("No secrets", "5");
  await label("Notes (optional)").fill("good");
  await press("Send");
  await recorded("4", "5", "good");

  await open("letter");
  await score("Clear and complete", "B");
  await score("No secrets", "A");
  await press("Send");
  await recorded("B", "A");

  await open("checklist");
  await label("Clear and complete").check();
  await press("Send");
  await recorded("Yes", "No");

  await open("custom");
  await label("Clear and complete (required)").fill("177.5");
  await label("No secrets (required)").fill("100");
  await press("Send");
  same("wrong", await page.getByRole("alert").getByRole("link").count(), 1);
  await label("Clear and complete (required)").fill("77.5");
  await press("Send");
  await recorded("77.5", "100");
});

await check("Arguments", async () => {
  await open("tool");
  await says("It will be done with exactly this", "POST", "/pay", "Example & Sons", "the <second> half", "250");
  await press("Approve");
  await recorded("Approve");
});

await check("Long", async () => {
  await gauge.setViewportSize(narrow);
  await gauge.goto(links.long);
  await sends(() => gauge.getByRole("button", { name: "Reject" }).click(), gauge);
  same("heading", await gauge.getByRole("heading", { level: 1 }).innerText(), "Your answer was recorded");
  await measure("long-done");
});

await check("Chinese", async () => {
  await open("chinese", "?lang=zh");
  await says("高风险", "发起人", "工作流", "金额", "上海");
  await sends(() => page.getByRole("link", { name: "English" }).click());
  await says("High risk");
  await sends(() => page.getByRole("link", { name: "中文" }).click());
  await label("备注（可选）").fill("同意");
  await press("批准");
  same("heading", await heading(), "您的答复已记录");
  await says("批准", "同意");
});

await check("Quorum", async () => {
  await open("quorum");
  await says("Approvals needed", "2");
  await press("Approve");
  await recorded("Others have to answer too");
  same("again", [await open("quorum"), await heading()], [410, "You have answered already"]);
});

await check("Closed", async () => {
  for (const [name, title, status] of [
    ["approve", "This link was used", 410],
    ["expired", "This link has expired", 410],
    ["ended", "This question is closed", 410],
  ]) {
    same(name, [await open(name), await heading()], [status, title]);
    same(`forms of ${name}`, await page.locator("form").count(), 0);
  }
  await says("It was withdrawn on");
  links.forged = links.approve.slice(0, -3) + "xyz";
  same("forged", [await open("forged"), await heading()], [404, "There is no such link"]);
  holds("a forged link tells what is asked", !(await text()).includes("invoice"));
  for (const name of ["forged", "approve"]) await look(name);
});

// Two tabs of one link, and the link of a colleague: who is late is told, and changes nothing.
await check("TwoTabs", async () => {
  const second = watch(await people.newPage());
  await open("twice");
  await second.goto(links.twice);
  await press("Approve");
  await recorded("Approve");
  await sends(() => second.getByRole("button", { name: "Reject" }).click(), second);
  same("late", await second.getByRole("heading", { level: 1 }).innerText(), "This link was used");
  holds("what it came to", (await second.locator("main").innerText()).includes(": Approve."));
  await second.close();
});

await browser.close();
