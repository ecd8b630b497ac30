import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { SCOPES } from '../../src/access/keys.ts'
import { verifyMessage } from '../../src/cli/sign.ts'
import { parseSettings } from '../../src/config/environment.ts'
import { FILE_SETTINGS, listSettingNames } from '../../src/config/settings.ts'
import { DECISIONS } from '../../src/decisions/obstacles.ts'
import { EVENT_TYPES } from '../../src/events/event.ts'
import { runCli } from '../support/cli.ts'

/** What the environment may set: the settings, and the files of secrets. */
const NAMES = new Set<string>([
  ...listSettingNames(),
  ...FILE_SETTINGS.map((name) => `${name}_FILE`),
])

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

const listFiles = (folder: string, end: string) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end))
    .map((file) => join(folder, file))

const PAGES = [
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'examples/order-system/README.md',
  'client/README.md',
  ...listFiles('docs', '.md'),
]

/** Returns a page without its code blocks. */
const readProse = (page: string) => read(page).replace(/^```.*?^```$/gms, '')
/** Returns the inline code of a page. */
const listCode = (page: string) =>
  [...readProse(page).matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
/** Returns the matches of a pattern on all pages, each after the name of its page. */
const findAll = (pattern: RegExp, text = read) =>
  PAGES.flatMap((page) =>
    [...text(page).matchAll(pattern)].map(([, match = '']) => [page, match] as const),
  )

/** Returns the anchors that GitHub makes of a page's headings. */
function listAnchors(page: string): string[] {
  const seen = new Map<string, number>()
  return [...readProse(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
}

/** Reports what is wrong with the target of a link; undefined if it leads somewhere. */
function findFault(page: string, target: string): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path))
  if (!existsSync(join(ROOT, file))) return `${page}: there is no ${target}`
  if (anchor === undefined || listAnchors(file).includes(anchor)) return undefined
  return `${page}: there is no heading for ${target}`
}

/** Returns the commands that the command line does not have: the help of a command names it. */
async function findUnknownCommands(commands: readonly string[]): Promise<string[]> {
  const known = await Promise.all(
    commands.map(async (command) => {
      const { out } = await runCli([...command.split(' '), '--help'], {})
      return out.startsWith(`Usage: cli ${command} `)
    }),
  )
  return commands.filter((_, n) => !known[n])
}

describe('the README', () => {
  it('is short, and names the commands that set up a new machine', () => {
    const text = read('README.md')
    expect(text.split('\n').length).toBeLessThanOrEqual(131)
    expect(text).toContain('```sh\nnpm ci && npm start\n```')
    expect(text).toContain('```sh\nnpm ci && npm test\n```')
  })

  it('leads to every page of the documentation', () => {
    const targets = [...read('README.md').matchAll(/\]\(([^)\s#]+)/g)]
    const linked = new Set(targets.map(([, target]) => target))
    const expected = ['SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', ...listFiles('docs', '.md')]
    // The decisions have an index of their own.
    const pages = expected.filter((page) => !/^docs\/decisions\/\d/.test(page))
    expect(pages.filter((page) => !linked.has(page))).toEqual([])
  })
})

describe('every page', () => {
  it('has links that lead to files and headings', () => {
    const links = findAll(/\]\(([^)\s]+)\)/g, readProse)
    const own = links.filter(([, target]) => !/^https?:/.test(target))
    expect(own.length).toBeGreaterThan(60)
    expect(own.flatMap(([page, target]) => findFault(page, target) ?? [])).toEqual([])
  })

  it('has the section that an alert leads to', () => {
    const alerts = read('ops/prometheus/alerts.yml')
      .split(/^ {6}- alert: /m)
      .slice(1)
    expect(alerts.length).toBeGreaterThan(15)
    const faults = alerts.flatMap((alert) => {
      const name = alert.split('\n', 1)[0] ?? ''
      const [, target = ''] = /^ {10}runbook_url: (docs\/operations\.md#\S+)$/m.exec(alert) ?? []
      return target === '' ? `${name} has no runbook` : (findFault(name, target) ?? [])
    })
    expect(faults).toEqual([])
  })

  it('reveals a broken link', () => {
    expect(findFault('README.md', 'docs/none.md')).toBe('README.md: there is no docs/none.md')
    expect(findFault('docs/api.md', 'refunds.md#none')).toBe(
      'docs/api.md: there is no heading for refunds.md#none',
    )
    expect(findFault('docs/api.md', '#the-gateways-side')).toBeUndefined()
  })

  it('names only scripts that exist', () => {
    const { scripts } = z
      .object({ scripts: z.record(z.string(), z.string()) })
      .parse(JSON.parse(read('package.json')))
    const named = findAll(/\bnpm run (?:-\S+ )*([\w:-]+)/g)
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter(([, script]) => !(script in scripts))).toEqual([])
  })

  it('names only commands of the command line that exist', async () => {
    const groups = /^(?:npm run (?:-s )?cli -- )?((?:keys|holds) [a-z]+|(?:sign|verify|audit)\b)/
    const blocks = findAll(/^npm run -s cli -- ((?:keys|holds) [a-z]+|\w+)/gm)
    const inline = PAGES.flatMap((page) =>
      listCode(page).flatMap((code) => groups.exec(code)?.[1] ?? []),
    )
    const named = new Set([...blocks.map(([, command]) => command), ...inline])
    expect(named.size).toBeGreaterThan(8)
    expect(await findUnknownCommands([...named])).toEqual([])
    expect(await findUnknownCommands(['keys forget', 'forget'])).toEqual(['keys forget', 'forget'])
  })

  it('names only source files and folders that exist', () => {
    const path = /(?<![\w./-])((?:src|test|docs|ops|examples)\/[\w./-]+)/g
    const named = PAGES.flatMap((page) =>
      listCode(page).flatMap((code) =>
        [...code.matchAll(path)].map(([, file = '']) => [page, file] as const),
      ),
    )
    expect(named.length).toBeGreaterThan(80)
    expect(named.filter(([, file]) => !existsSync(join(ROOT, file)))).toEqual([])
  })

  it('names only settings that exist', () => {
    const ours = /^((?:API|CARDS|DATA|DATABASE|GATEWAY|IPN|REFUNDS?|SANDBOX|SYNC|WEBHOOK)_[A-Z_]+)/
    const named = PAGES.flatMap((page) =>
      listCode(page).flatMap((code) => {
        const name = ours.exec(code)?.[1]
        return name === undefined || name.endsWith('_') ? [] : [[page, name] as const]
      }),
    )
    expect(named.length).toBeGreaterThan(60)
    expect(named.filter(([, name]) => !NAMES.has(name))).toEqual([])
  })
})

describe('the list of settings', () => {
  const rows = [...read('docs/settings.md').matchAll(/^\| (`.+?) \| (.+?) \| .+ \|$/gm)].map(
    ([, names = '', defaults = '']) => ({
      names: [...names.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name),
      defaults: defaults.split(', '),
    }),
  )

  it('names every setting, once, and no other', () => {
    const named = rows.flatMap(({ names }) => names)
    expect(named.toSorted()).toEqual(listSettingNames().toSorted())
  })

  it('has the default of every setting', () => {
    const documented = new Map(
      rows.flatMap(({ names, defaults }) =>
        names.map((name, index) => [
          name,
          names.length === 1 ? defaults.join(', ') : defaults[index],
        ]),
      ),
    )
    const wrong = Object.entries(parseSettings({}).settings).filter(([name, value]) => {
      if (value === undefined) return false
      const isEmpty = Array.isArray(value) && value.length === 0
      const expected = isEmpty ? 'unset' : `\`${value}\``
      return !documented.get(name)?.startsWith(expected)
    })
    expect(wrong).toEqual([])
  })

  it('names every setting that can be read from a file', () => {
    const [, paragraph = ''] =
      /^\*\*Secrets in files\.\*\* (.+?)\n\n/ms.exec(read('docs/settings.md')) ?? []
    const named = [...paragraph.matchAll(/`([A-Z_]{7,})`/g)].map(([, name = '']) => name)
    const secrets = named.filter((name) => name !== 'NAME_FILE')
    expect(secrets.toSorted()).toEqual(FILE_SETTINGS.toSorted())
  })

  it('has every setting of .env.example', () => {
    const given = [...read('.env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name = '']) => name)
    expect(given.length).toBeGreaterThan(15)
    const others = given.filter((name) => !NAMES.has(name))
    expect(others).toEqual(['NODE_EXTRA_CA_CERTS'])
  })
})

const withIds = (path: string) => path.replace(/\{\w+\}/g, '{id}')

describe('the documentation', () => {
  it('lists every route', () => {
    const declared = listFiles('src', '.ts')
      .filter((file) => !/^src\/(sandbox|console)\//.test(file))
      .flatMap((file) => [...read(file).matchAll(/\bpath: '(\/[^']*)'/g)])
      .map(([, path = '']) => path)
    const decisions = Object.values(DECISIONS).map(({ path }) => `/v1/refunds/{id}/${path}`)
    const served = [...decisions, ...declared.filter((path) => !path.startsWith('/docs/'))]
    expect(served.length).toBeGreaterThan(20)
    const text = ['docs/api.md', 'docs/webhooks.md'].map(read).join('\n')
    const listed = new Set(
      [...text.matchAll(/[` ](\/[^`\s?]+)/g)].map(([, path = '']) => withIds(path)),
    )
    const paths = served.map(withIds)
    expect(paths.filter((path) => !listed.has(path))).toEqual([])
  })

  it('explains every scope and every type of event', () => {
    const [api, webhooks] = [read('docs/api.md'), read('docs/webhooks.md')]
    expect(SCOPES.filter((scope) => !api.includes(`\n| \`${scope}\` |`))).toEqual([])
    const explained = [...webhooks.matchAll(/^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \|/gm)]
      .map(([row]) => row)
      .join('')
    expect(EVENT_TYPES.filter((type) => !explained.includes(`\`${type}\``))).toEqual([])
  })

  it('shows what `cli verify` prints', async () => {
    const page = read('docs/operations.md')
    const [, secret, message = ''] =
      /SIGNING_SECRET=(\w+) npm run -s cli -- verify <<'END'\n(.*?)END\n/s.exec(page) ?? []
    const [, shown] = /```\n(NOT VALID\n.*?)```/s.exec(page) ?? []
    const input = { name: 'cli', input: Readable.from([message]), env: { SIGNING_SECRET: secret } }
    expect((await verifyMessage(input, {})).text).toBe(shown)
  })

  it('has an index of all decisions', () => {
    const records = readdirSync(join(ROOT, 'docs/decisions')).filter((file) => /^\d/.test(file))
    expect(records.length).toBeGreaterThan(20)
    const index = read('docs/decisions/README.md')
    const titles = records.map((file) => {
      const [, number, title] = /^# (\d{4})\. (.+)\n/.exec(read(`docs/decisions/${file}`)) ?? []
      return `| ${number} | [${title}](${file}) |`
    })
    expect(titles.filter((row) => !index.includes(row))).toEqual([])
    expect(records.map((file) => Number(file.slice(0, 4)))).toEqual(
      records.map((_, index) => index + 1),
    )
  })
})
