import { readFile, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import { runCli } from '../../src/cli/run.ts'
import { parseSettings } from '../../src/config/environment.ts'
import {
  listSettingNames,
  SECRET_SETTINGS,
  SETTINGS,
  type SettingName,
} from '../../src/config/settings.ts'
import { findText } from '../../src/console/texts/text.ts'
import { DISCREPANCY_KINDS } from '../../src/discrepancies/kinds.ts'
import { REFUSALS } from '../../src/errors.ts'
import { EVENT_TYPES, EVENTS } from '../../src/events/event.ts'
import { createMetrics } from '../../src/metrics.ts'
import { readDocument } from '../read-document.ts'
import { SECTIONS } from './settings.ts'
import { EXITS } from './states.ts'

/**
 * Writes `docs/reference.md` from the tables that the service works with: `npm run docs`. With `--check` it writes nothing,
 * and fails if the page is not what they say.
 */

const TARGET = new URL('../../docs/reference.md', import.meta.url)

const code = (text: string) => `\`${text}\``

/** A table in Markdown; what would end a cell is escaped. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replaceAll('\n', ' ')).join(' | ')} |`
  return [line(head), line(head.map(() => '---')), ...rows.map(line), ''].join('\n')
}

/** What a setting accepts, as the refusal of an empty value words it. */
function describeValue(name: SettingName): string {
  const message = SETTINGS[name].safeParse('').error?.issues[0]?.message ?? ''
  const [must = ''] = message.split(';')
  if (/^must (not be empty|be text)$/.test(must)) return 'text'
  return must.startsWith('must be ') ? must.slice('must be '.length) : `text: ${must}`
}

const DEFAULTS = new Map<string, unknown>(Object.entries(parseSettings({}).settings))

const UNITS = [
  ['days', 86_400_000],
  ['hours', 3_600_000],
  ['minutes', 60_000],
  ['seconds', 1_000],
] as const

/** Milliseconds in the largest unit that gives a whole number of more than one. */
function describeDuration(ms: number): string {
  const [unit, size] = UNITS.find(([, one]) => ms % one === 0 && ms >= 2 * one) ?? ['', 1]
  return unit === '' ? '' : ` (${ms / size} ${unit})`
}

function describeDefault(name: SettingName): string {
  const value = DEFAULTS.get(name)
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return ''
  const isTime = name.endsWith('_MS') && typeof value === 'number'
  return `${code(String(value))}${isTime ? describeDuration(value) : ''}`
}

function describeSetting([name, description]: [string, string]): string[] {
  const known = listSettingNames().find((one) => one === name)
  if (known === undefined) throw new Error(`ops/reference/settings.ts: ${name} is no setting`)
  const mark = SECRET_SETTINGS.includes(known) ? ' †' : ''
  return [`${code(name)}${mark}`, describeValue(known), describeDefault(known), description]
}

function describeSettings(): string {
  const described = Object.values(SECTIONS).flatMap((section) => Object.keys(section))
  const missing = listSettingNames().filter((name) => !described.includes(name))
  if (missing.length > 0) throw new Error(`ops/reference/settings.ts has no ${missing.join(', ')}`)
  return Object.entries(SECTIONS)
    .map(([title, section]) => {
      const rows = Object.entries(section).map(describeSetting)
      return `### ${title}\n\n${table(['setting', 'value', 'default', 'meaning'], rows)}`
    })
    .join('\n')
}

const Metric = z.object({
  name: z.string(),
  help: z.string(),
  type: z.enum(['counter', 'gauge', 'histogram']),
  values: z.array(z.object({ labels: z.record(z.string(), z.union([z.string(), z.number()])) })),
})

/** The labels of every metric, and the values that each has from the start. */
async function describeMetrics(): Promise<string> {
  const { registry } = createMetrics()
  const names = z.array(z.object({ name: z.string(), labelNames: z.array(z.string()) }))
  const labels = new Map(
    names.parse(registry.getMetricsAsArray()).map(({ name, labelNames }) => [name, labelNames]),
  )
  const metrics = z.array(Metric).parse(await registry.getMetricsAsJSON())
  const rows = metrics
    .filter(({ name }) => !/^(process|nodejs)_/.test(name))
    .map(({ name, help, type, values }) => {
      const own = (labels.get(name) ?? []).filter((label) => label !== 'le')
      const known = own.map((label) => {
        const all = new Set(values.flatMap((value) => value.labels[label] ?? []))
        const named = label === 'version' ? [] : [...all].map((value) => code(String(value)))
        return `${code(label)}${named.length > 0 ? `: ${named.join(', ')}` : ''}`
      })
      return [code(name), type, known.join('; '), help]
    })
  return table(['metric', 'type', 'labels', 'what it shows'], rows)
}

const Operation = z.object({
  tags: z.array(z.string()),
  summary: z.string(),
  security: z.array(z.record(z.string(), z.array(z.string()))).optional(),
  parameters: z.array(z.object({ in: z.string(), name: z.string() })).optional(),
})

const Document = z.object({
  tags: z.array(z.object({ name: z.string(), description: z.string() })),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
})

async function describeRoutes(): Promise<string> {
  const { tags, paths } = Document.parse(JSON.parse(await readDocument()))
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, ...operation })),
  )
  const list = (tag: string) =>
    operations
      .filter(({ tags: [first] }) => first === tag)
      .map(({ path, method, summary, security = [], parameters = [] }) => [
        code(`${method.toUpperCase()} ${path}`),
        security
          .flatMap((one) => Object.values(one).flat())
          .map(code)
          .join(', '),
        summary,
        parameters
          .filter((parameter) => parameter.in === 'query')
          .map(({ name }) => code(name))
          .join(', '),
      ])
  return tags
    .map(
      ({ name, description }) =>
        `### ${name}\n\n${description}.\n\n${table(['route', 'scope', 'what it does', 'query'], list(name))}`,
    )
    .join('\n')
}

function describeRefusals(): string {
  const rows = Object.entries(REFUSALS).map(([name, { status, title }]) => [
    code(name),
    String(status),
    title,
  ])
  return table(['code', 'status', 'title'], rows)
}

function describeEvents(): string {
  const rows = EVENT_TYPES.map((type) => [
    code(type),
    EVENTS[type].object.replaceAll('_', ' '),
    code(EVENTS[type].scope),
  ])
  return table(['type', 'object', 'scope'], rows)
}

function describeStates(): string {
  const rows = EXITS.map(({ object, states, exit, who, call }) => [
    object,
    states
      .map((state) => (state === 'sending' ? '`sending`, shown as `pending`' : code(state)))
      .join(', '),
    exit,
    call === undefined ? who : code(who),
    call === undefined ? '' : code(call),
  ])
  return table(['object', 'state', 'what leaves it', 'who', 'call'], rows)
}

function describeDiscrepancies(): string {
  const rows = Object.entries(DISCREPANCY_KINDS).map(([kind, { severity }]) => [
    code(kind),
    severity,
    findText('en', `discrepancyHelp.${kind}.meaning`) ?? '',
    findText('en', `discrepancyHelp.${kind}.steps`) ?? '',
  ])
  return table(['kind', 'severity', 'what it means', 'what to do'], rows)
}

async function readHelp(command: readonly string[]): Promise<string> {
  let help = ''
  const print = (text: string) => {
    help += text
  }
  const streams = { name: 'cli', env: {}, input: process.stdin, print, printError: print }
  await runCli([...command, '--help'], streams)
  return help
}

const fence = (text: string) => `\`\`\`\n${text.trimEnd()}\n\`\`\`\n`

/** The help of every command of the command line, group by group. */
async function describeCommands(command: readonly string[] = []): Promise<string> {
  const help = await readHelp(command)
  const [, list = ''] = help.split('\nCommands:\n')
  const names = [...list.matchAll(/^ {2}(\w+)/gm)].flatMap(([, name]) => name ?? [])
  const own = names.filter((name) => name !== 'help')
  if (own.length === 0) return fence(help)
  // A group that does something by itself has options of its own.
  const parts = command.length > 0 && help.includes('--json') ? [fence(help)] : []
  for (const name of own) parts.push(await describeCommands([...command, name]))
  return parts.join('\n')
}

async function writeReference(): Promise<string> {
  // The width to which the help of a command is broken, whatever the terminal.
  Object.defineProperty(process.stdout, 'isTTY', { value: false })
  return `<!-- Written by \`npm run docs\` from the tables of the source. Do not edit it. -->

# Reference

[Settings](#settings) · [Routes](#routes) · [Event types](#event-types) · [Refusals](#refusals) · [States](#states) ·
[Kinds of discrepancy](#kinds-of-discrepancy) · [Metrics](#metrics) · [Command line](#command-line)

## Settings

Settings come from the environment; an empty value counts as unset. [Operations](operations.md#settings) says how they are
read. Times are in milliseconds (\`_MS\`). What is marked † can be read from a file instead: \`NAME_FILE\` is its path.

${describeSettings()}
## Routes

\`/openapi.json\` describes every parameter, body and answer, and \`/docs\` shows it in a browser.
[Integrate](integrate.md) has the API by example.

${await describeRoutes()}
## Event types

[Integrate](integrate.md#the-change-feed) says when each is recorded. An event of a discrepancy that names a refund takes
the scope \`refunds:read\`.

${describeEvents()}
## Refusals

A refusal is a problem (RFC 9457), whose \`code\` is stable.

${describeRefusals()}
## States

What leaves each state, who may cause it, and the call. *Service* stands for the service itself; a scope stands for any
key that has it. [Refunds](refunds.md) has the rules.

${describeStates()}
## Kinds of discrepancy

[Refunds](refunds.md#discrepancies) has what they have in common.

${describeDiscrepancies()}
## Metrics

Beside the default metrics of the process (\`process_…\`, \`nodejs_…\`). Label values that are listed begin at 0, so that an
alert sees the first occurrence. [Operations](operations.md#metrics) says what to watch.

${await describeMetrics()}
## Command line

[Operations](operations.md#command-line) explains when to use which command, and [Ways to
deploy](../deploy/README.md#how-to-run-the-command-line) how to run it in a container.

${await describeCommands()}`
}

const written = await writeReference()
if (!process.argv.includes('--check')) await writeFile(TARGET, written)
else if ((await readFile(TARGET, 'utf8')) !== written) {
  console.error('docs/reference.md is not what the source says: run `npm run docs`')
  process.exitCode = 1
}
