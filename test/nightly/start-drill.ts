import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** How to stop each part, in the order of their start. */
export type Stops = (() => Promise<unknown>)[]

export type Drill<P> = P & {
  /** For what its processes write. */
  folder: string
  /** Stops everything; keeps the folder on request. */
  stop(keep: boolean): Promise<void>
}

/** Starts the parts of a drill in a folder that other users can reach. If one fails, those before it are stopped. */
export async function startDrill<P extends object>(
  name: string,
  start: (folder: string, stops: Stops) => Promise<P>,
): Promise<Drill<P>> {
  const folder = mkdtempSync(join(tmpdir(), `ipn-${name}-`))
  chmodSync(folder, 0o755)
  const stops: Stops = []
  async function stop(keep: boolean): Promise<void> {
    for (const end of stops.splice(0).reverse()) await end()
    if (keep) console.info(`the logs of the processes are in ${folder}`)
    else rmSync(folder, { recursive: true, force: true })
  }
  try {
    return { ...(await start(folder, stops)), folder, stop }
  } catch (error) {
    await stop(true)
    throw error
  }
}
