import { type Command, Option } from 'commander'
import { type ListedKey, listKeys } from '../access/change-keys.ts'
import { SCOPES } from '../access/keys.ts'
import { toIso } from '../db/client.ts'
import { create, revoke, rotate, type Wanted } from './change-keys.ts'
import { withDatabase } from './database.ts'
import { readCap, readCount, readDuration, readEnd, readName, readScopes } from './options.ts'
import { writeTable } from './table.ts'

const DAY_S = 86_400

type Print = (text: string) => void
type Json = { json?: true }

/** `keys create | list | rotate | revoke`: what the service knows of API keys. */
export function addKeyCommands(program: Command, print: Print): void {
  const keys = program.command('keys').description('make, list, rotate and revoke API keys')
  const json = () => new Option('--json', 'as JSON, for programs')

  keys
    .command('create')
    .description('make a key; it is shown once')
    .argument('<name>', 'what to know it by', readName)
    .requiredOption('--scopes <names>', `all, or some of ${SCOPES.join(',')}`, readScopes)
    .requiredOption('--merchant <code>', "the account whose data it sees, '*' for all")
    .option('--refund-max <amount>', 'the largest single refund', readCap)
    .option('--refund-daily-max <amount>', 'the most refunded in a UTC day', readCap)
    .option(
      '--rate <n>',
      'requests a minute, counted by each process; no limit if left out',
      readCount,
    )
    .option(
      '--expires <when>',
      'in a duration (90d, 12h) or at a time (2027-01-31T00:00:00Z)',
      readEnd,
    )
    .addOption(json())
    .action(async (name: string, options: Wanted & Json) => {
      const made = await withDatabase((sql) => create(sql, name, options))
      print(options.json ? writeJson(made) : presentKey(made.key, `${made.id}  ${name}`))
    })

  keys
    .command('list')
    .description('list every key, newest first; none is shown itself')
    .addOption(json())
    .action(async (options: Json) => {
      const rows = (await withDatabase((sql) => listKeys(sql))).map(showKey)
      print(options.json ? writeJson(rows) : writeTable(HEADINGS, rows.map(writeRow)))
    })

  keys
    .command('rotate')
    .description('make the successor of a key; for the grace both are good')
    .argument('<key>', 'its id, or its name if one live key has it')
    .option('--grace <duration>', 'how long the old key stays good', readDuration, DAY_S)
    .addOption(json())
    .action(async (ref: string, { grace, json: asJson }: Json & { grace: number }) => {
      const { key, id, oldId, oldEndsAt } = await withDatabase((sql) => rotate(sql, ref, grace))
      const result = { id, key, replaces: oldId, oldKeyEndsAt: oldEndsAt }
      print(
        asJson ? writeJson(result) : presentKey(key, `${id}, in the place of ${oldId}`, oldEndsAt),
      )
    })

  keys
    .command('revoke')
    .description('end a key now')
    .argument('<key>', 'its id, or its name if one live key has it')
    .addOption(json())
    .action(async (ref: string, options: Json) => {
      const { id, wasLive } = await withDatabase((sql) => revoke(sql, ref))
      const words = wasLive
        ? 'is revoked: it writes nothing from now on, and begins no read a second later'
        : 'was revoked before'
      print(options.json ? writeJson({ id, revoked: true }) : `${id} ${words}\n`)
    })
}

const showKey = ({ createdAt, expiresAt, revokedAt, ...key }: ListedKey) => ({
  ...key,
  createdAt: toIso(createdAt),
  expiresAt: toIso(expiresAt),
  revokedAt: toIso(revokedAt),
})

const HEADINGS = ['ID', 'NAME', 'STATE', 'MERCHANT', 'SCOPES', 'REFUNDS', 'RATE', 'CREATED', 'ENDS']

function writeRow(key: ReturnType<typeof showKey>): string[] {
  const caps = [
    ...(key.refundMax === null ? [] : [`≤ ${key.refundMax}`]),
    ...(key.refundDailyMax === null ? [] : [`≤ ${key.refundDailyMax} a day`]),
  ]
  return [
    key.id,
    key.name,
    key.state,
    key.merchantCode,
    key.scopes.length === SCOPES.length ? 'all' : key.scopes.join(','),
    caps.join(', ') || '-',
    key.ratePerMinute === null ? '-' : `${key.ratePerMinute}/min`,
    key.createdAt.slice(0, 16),
    (key.revokedAt ?? key.expiresAt)?.slice(0, 16) ?? '-',
  ]
}

function presentKey(key: string, what: string, oldEndsAt?: string): string {
  const old = oldEndsAt === undefined ? '' : `The old key is good until ${oldEndsAt}.\n`
  return `${key}\n\nThis is the key ${what}. A key is shown only now: just its hash is stored.\n${old}`
}

function writeJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
