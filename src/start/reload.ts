import { prepareFirstKey } from '../access/prepare-access.ts'
import { registerMerchantCodes } from '../accounts/merchant-codes.ts'
import type { Config } from '../config/config.ts'
import { ConfigError } from '../config/sources.ts'
import type { Context } from '../context.ts'
import { SYNC_DUE } from '../db/channels.ts'
import { notify } from '../platform/postgres/notify.ts'
import type { Log } from '../platform/telemetry/log.ts'
import { type ConfigChanges, compareConfigs, selectReloaded } from './compare-configs.ts'
import { warnOfWeakSecrets } from './warn-of-weak-secrets.ts'

type ReloadContext = Pick<Context, 'config' | 'log' | 'sql' | 'breakers' | 'merchants'>

/** Reads the settings again, one reload after the other. */
export type Reloader = {
  /** Requests a reload; it runs when the service does and earlier ones have ended. Never throws. */
  request(): void
  /** Hands over the running service. */
  attach(ctx: ReloadContext & Pick<Context, 'stopping'>): void
}

/**
 * Creates the reloader of a process: requests that come before the service runs are kept for it.
 * @param read reads the environment and the files that it names
 */
export function createReloader(log: Log, read: () => Config): Reloader {
  let attach: Reloader['attach'] = () => {}
  const attached = new Promise<Parameters<Reloader['attach']>[0]>((resolve) => {
    attach = resolve
  })
  let last = Promise.resolve()
  async function reload(): Promise<void> {
    const ctx = await attached
    if (ctx.stopping.aborted) return
    await reloadSettings(ctx, read).catch((err: unknown) => {
      log.error({ err }, 'the settings could not be reloaded; they stay as they were')
    })
  }
  return {
    request() {
      last = last.then(reload)
    },
    attach,
  }
}

/**
 * Reads the settings again and applies what a running process can change: accounts, secrets of the gateway, `API_KEY` and
 * the log level. All of it or, with invalid settings, nothing; logs by name what changed and what needs a restart.
 * @param read reads the environment and the files that it names
 * @throws database errors, before anything is applied in this process
 */
export async function reloadSettings(ctx: ReloadContext, read: () => Config): Promise<void> {
  const next = readValid(ctx.log, read)
  if (!next) return
  const changes = compareConfigs(ctx.config, next)
  const merchants =
    changes.added.length > 0 ? await registerMerchantCodes(ctx.sql, next) : ctx.merchants
  if (changes.reloaded.includes('API_KEY')) await prepareFirstKey({ ...ctx, config: next })
  const hadOne = ctx.config.accounts.filter(({ removed }) => !removed).length === 1
  apply(ctx, next, merchants)
  logChanges(ctx.log, changes, next.LOG_LEVEL)
  if (hadOne && next.accounts.length > 1) {
    const name = `${next.GATEWAY_FIELD_PREFIX}_MerchantCode`
    ctx.log.warn(
      `notifications without ${name} are refused with 400 from now on, because several accounts are configured; have the gateway send ${name}`,
    )
  }
  const renewed = [...changes.added, ...changes.changed]
  warnOfWeakSecrets(next, ctx.log, ({ merchantCode }) => renewed.includes(merchantCode))
}

function readValid(log: Log, read: () => Config): Config | undefined {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    log.error(
      { problems: error.lines },
      'the settings were not reloaded, because some are invalid; they stay as they were',
    )
    return undefined
  }
}

/** Never waits: a call or a notification sees all of the change or nothing of it. */
function apply(ctx: ReloadContext, next: Config, merchants: readonly string[]): void {
  const had = ctx.config.accounts.map(({ merchantCode }) => merchantCode)
  Object.assign(ctx.config, selectReloaded(ctx.config, next))
  ctx.merchants = merchants
  const added = ctx.config.accounts.filter(({ merchantCode }) => !had.includes(merchantCode))
  for (const { merchantCode } of added) {
    for (const operation of ['query', 'refund'] as const) ctx.breakers.of(merchantCode, operation)
  }
  // An account that was configured before may have work that is due.
  if (added.length > 0) notify(ctx.sql, SYNC_DUE)
}

/** Logs one line of what has changed, at the new level or the old one, whichever shows it. */
function logChanges(log: Log, changes: ConfigChanges, level: Config['LOG_LEVEL']): void {
  const { added, changed, removed, reloaded, needRestart } = changes
  const logLevel = log.level === level ? undefined : { from: log.level, to: level }
  const accounts = { added, changed, removed }
  const secrets = reloaded.filter((name) => name !== 'LOG_LEVEL')
  const isNothing = [added, changed, removed, reloaded, needRestart].every((list) => !list.length)
  const message = isNothing ? 'settings reloaded: nothing has changed' : 'settings reloaded'
  const write = () => log.info({ accounts, secrets, logLevel }, message)
  const wasShown = log.isLevelEnabled('info')
  if (wasShown) write()
  log.level = level
  if (!wasShown) write()
  if (removed.length > 0) {
    log.warn(
      { accounts: removed },
      'these accounts are no longer configured, which needs a restart: until then they are served as before',
    )
  }
  if (needRestart.length > 0) {
    log.warn({ settings: needRestart }, 'these settings have changed, which needs a restart')
  }
}
