import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { SCOPES } from '../../src/access/keys.ts'
import { verifyMessage } from '../../src/cli/sign.ts'
import { listSettingNames, SECRET_SETTINGS } from '../../src/config/settings.ts'
import { EVENT_TYPES } from '../../src/events/event.ts'
import { runCli } from '../support/cli.ts'

/** What the environment may set: the settings, and the files of secrets. */
const NAMES = new Set<string>([
  ...listSettingNames(),
  ...SECRET_SETTINGS.map((name) => `${name}_FILE`),
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
  'deploy/README.md',
  'examples/order-system/README.md',
  'client/README.md',
  'test/nightly/README.md',
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
    const roots = ['SECURITY.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'deploy/README.md']
    const expected = [...roots, ...listFiles('docs', '.md')]
    expect(expected.filter((page) => !linked.has(page))).toEqual([])
  })
})

describe('every page', () => {
  it('has links that lead to files and headings', () => {
    const links = findAll(/\]\(([^)\s]+)\)/g, readProse)
    const own = links.filter(([, target]) => !/^https?:/.test(target))
    expect(own.length).toBeGreaterThan(60)
    expect(own.flatMap(([page, target]) => findFault(page, target) ?? [])).toEqual([])
  })

  it('has what code, alerts, files of a deployment and messages refer to', () => {
    const roots = ['.env.example', 'compose.yaml', 'Containerfile', '.github/workflows/release.yml']
    const folders = ['src', 'ops', 'deploy', 'examples', 'test'].flatMap((folder) =>
      listFiles(folder, ''),
    )
    const own = relative(ROOT, fileURLToPath(import.meta.url))
    const text = /\.(ts|tsx|js|json|ya?ml|sh|env|service|css)$|Caddyfile$/
    const files = [...roots, ...folders.filter((file) => text.test(file) && file !== own)]
    const named = files.flatMap((file) =>
      [...read(file).matchAll(/\b((?:docs|deploy)\/[\w/-]+\.md(?:#[\w-]+)?)/g)].map(
        ([, target = '']) => [file, target] as const,
      ),
    )
    expect(named.length).toBeGreaterThan(30)
    const faults = named.flatMap(([file, target]) => {
      const fault = findFault('README.md', target)
      return fault === undefined ? [] : [`${file}: ${fault}`]
    })
    expect(faults).toEqual([])
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
    expect(findFault('docs/integrate.md', 'refunds.md#none')).toBe(
      'docs/integrate.md: there is no heading for refunds.md#none',
    )
    expect(findFault('docs/integrate.md', '#the-gateways-side')).toBeUndefined()
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

describe('the example of settings', () => {
  it('names only settings that exist', () => {
    const given = [...read('.env.example').matchAll(/^#?([A-Z_]+)=/gm)].map(([, name = '']) => name)
    expect(given.length).toBeGreaterThan(15)
    const others = given.filter((name) => !NAMES.has(name))
    expect(others).toEqual([
      'NODE_EXTRA_CA_CERTS',
      'OTEL_TRACES_SAMPLER',
      'OTEL_TRACES_SAMPLER_ARG',
    ])
  })
})

describe('the documentation', () => {
  it('explains every scope and every type of event', () => {
    const page = read('docs/integrate.md')
    expect(SCOPES.filter((scope) => !page.includes(`\n| \`${scope}\` |`))).toEqual([])
    const explained = [...page.matchAll(/^\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \|/gm)]
      .map(([row]) => row)
      .join('')
    expect(EVENT_TYPES.filter((type) => !explained.includes(`\`${type}\``))).toEqual([])
  })

  it('shows what `cli verify` prints', async () => {
    const page = read('docs/operations.md')
    const [, secret, message = ''] =
      /SIGNING_SECRET=(\w+) npm run -s cli -- verify <<'END'\n(.*?)END\n/s.exec(page) ?? []
    const [, shown = ''] = /```\n(NOT VALID\n.*?)```/s.exec(page) ?? []
    const input = { name: 'cli', input: Readable.from([message]), env: { SIGNING_SECRET: secret } }
    const { text } = await verifyMessage(input, {})
    // The page leaves out what stands between.
    const parts = shown.split('…\n')
    expect(parts.length).toBe(2)
    for (const part of parts) expect(text).toContain(part.trim())
  })

  it('numbers every decision, and tells each in a few lines', () => {
    const records = read('docs/decisions.md').split(/^## /m).slice(1)
    expect(records.map((record) => Number.parseInt(record, 10))).toEqual(
      records.map((_, index) => index + 1),
    )
    expect(records.length).toBeGreaterThanOrEqual(40)
    const long = records.filter((record) => record.trim().split('\n').length > 10)
    expect(long.map((record) => record.split('\n', 1)[0])).toEqual([])
  })
})
