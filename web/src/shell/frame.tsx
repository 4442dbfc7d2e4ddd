import { ActionIcon, Indicator, Menu, Tooltip, useMantineColorScheme, VisuallyHidden } from "@mantine/core"
import { useHotkeys } from "@mantine/hooks"
import { IconBook, IconHome, IconInbox, IconKeyboard, IconLanguage, IconLogout, IconMoonStars, IconPlayerPlay, IconRobot, IconSchema, IconSearch, IconSettings, IconSun, IconUser } from "@tabler/icons-react"
import { lazy, Suspense, useEffect, useState } from "react"
import { useTranslation } from "react-i18next"
import { Link, NavLink, Outlet } from "react-router"
import { call, client } from "@/api/client"
import { useMe } from "@/api/me"
import { Loading } from "@/parts/states"
import { language, speak } from "@/words"
import { useWaiting } from "./inbox_count"
import classes from "./frame.module.css"

const Shortcuts = lazy(() => import("./shortcuts"))
const Palette = lazy(() => import("./palette"))

const places = [
  { to: "/", name: "home", icon: IconHome, end: true },
  { to: "/workflows", name: "workflows", icon: IconSchema },
  { to: "/executions", name: "executions", icon: IconPlayerPlay },
  { to: "/inbox", name: "inbox", icon: IconInbox },
  { to: "/agents", name: "agents", icon: IconRobot },
  { to: "/settings", name: "settings", icon: IconSettings },
] as const

/** Frame is around every place: the bar with the six places, the word that the server is away, and the palette of commands. */
export function Frame() {
  const { t } = useTranslation("shell")
  const { count, connection } = useWaiting()
  const [palette, setPalette] = useState(false)
  const [keys, setKeys] = useState(false)
  useHotkeys([["mod+K", () => setPalette(true)]], [])
  // The question mark is on another key of each keyboard: what counts is the sign. While somebody writes, it is written.
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key !== "?" || e.ctrlKey || e.metaKey || e.defaultPrevented) return
      if (e.target instanceof HTMLElement && (e.target.isContentEditable || e.target.closest("input, textarea, select, [role=dialog], .cm-editor"))) return
      e.preventDefault()
      setKeys(true)
    }
    document.addEventListener("keydown", press)
    return () => document.removeEventListener("keydown", press)
  }, [])
  return (
    <div className={classes.frame}>
      <a className={classes.skip} href="#main">
        {t("skip")}
      </a>
      <nav className={classes.bar} aria-label={t("places")}>
        {places.map(({ to, name, icon: Icon, ...rest }) => (
          <Tooltip key={to} label={t(`place.${name}`)} position="right" openDelay={400}>
            <NavLink to={to} end={"end" in rest} className={classes.place}>
              <Indicator disabled={name !== "inbox" || count === 0} label={count > 99 ? "99+" : count} size={16} color="yellow.4" autoContrast>
                <Icon size={20} stroke={1.6} aria-hidden />
              </Indicator>
              <span className={classes.name}>{t(`place.${name}`)}</span>
              {name === "inbox" && count > 0 && <VisuallyHidden>{t("waiting", { count })}</VisuallyHidden>}
            </NavLink>
          </Tooltip>
        ))}
        <span className={classes.gap} />
        <Tooltip label={t("find")} position="right">
          <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("find")} onClick={() => setPalette(true)} className={classes.extra}>
            <IconSearch size={18} stroke={1.6} />
          </ActionIcon>
        </Tooltip>
        <Account onKeys={() => setKeys(true)} />
      </nav>
      <div className={classes.page}>
        {connection === "away" && (
          <div className={classes.away} role="status">
            {t("away")}
          </div>
        )}
        <main id="main" className={classes.main} tabIndex={-1}>
          <Suspense fallback={<Loading />}>
            <Outlet />
          </Suspense>
        </main>
      </div>
      {keys && (
        <Suspense>
          <Shortcuts onClose={() => setKeys(false)} />
        </Suspense>
      )}
      {palette && (
        <Suspense>
          <Palette onClose={() => setPalette(false)} />
        </Suspense>
      )}
    </div>
  )
}

// Account has who is logged in, the language, light and dark, and the way out.
function Account({ onKeys }: { onKeys: () => void }) {
  const { t } = useTranslation("shell")
  const { data: me } = useMe()
  const { colorScheme, setColorScheme } = useMantineColorScheme()
  const logOut = async () => {
    await call(client.DELETE("/api/v1/sessions/current", {}))
    location.assign("/login")
  }
  return (
    <Menu position="right-end" withinPortal shadow="md" width={220}>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={t("account")} className={classes.extra}>
          <IconUser size={18} stroke={1.6} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {me && <Menu.Label>{me.name || me.id}</Menu.Label>}
        <Menu.Item leftSection={<IconLanguage size={16} />} onClick={() => void speak(language() === "zh" ? "en" : "zh")} lang={language() === "zh" ? "en" : "zh-CN"}>
          {t("otherLanguage")}
        </Menu.Item>
        <Menu.Item leftSection={<IconSun size={16} />} onClick={() => setColorScheme("light")} disabled={colorScheme === "light"}>
          {t("light")}
        </Menu.Item>
        <Menu.Item leftSection={<IconMoonStars size={16} />} onClick={() => setColorScheme("dark")} disabled={colorScheme === "dark"}>
          {t("dark")}
        </Menu.Item>
        <Menu.Item onClick={() => setColorScheme("auto")} disabled={colorScheme === "auto"}>
          {t("auto")}
        </Menu.Item>
        <Menu.Item leftSection={<IconKeyboard size={16} />} onClick={onKeys}>
          {t("keys.title")}
        </Menu.Item>
        <Menu.Divider />
        <Menu.Item component={Link} to="/docs" leftSection={<IconBook size={16} />}>
          {t("docs")}
        </Menu.Item>
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => void logOut()}>
          {t("logOut")}
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
