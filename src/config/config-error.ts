/** Reports invalid settings: each line names one setting, what is wrong with it and an example. */
export class ConfigError extends Error {
  readonly lines: readonly string[]
  constructor(lines: readonly string[]) {
    super(lines.join('\n'))
    this.name = 'ConfigError'
    this.lines = lines
  }
}
