import { expect, type Locator, type Page } from '@playwright/test';

/** The chat as a person uses it. */
export class Chat {
  readonly message: Locator;
  readonly exit: Locator;
  readonly log: Locator;

  constructor(readonly page: Page, private readonly by: 'mouse' | 'keyboard' = 'keyboard') {
    this.message = page.getByRole('textbox', { name: 'Message', exact: true });
    this.exit = page.getByRole('button', { name: 'Back to main assistant' });
    this.log = page.getByRole('main');
  }

  async open(url: string): Promise<this> {
    await this.page.goto(url);
    await expect(this.message).toBeVisible();
    return this;
  }

  /** Writes and sends a message. */
  async say(text: string): Promise<void> {
    if (this.by === 'mouse') await this.message.click();
    await this.message.fill(text);
    if (this.by === 'mouse') await this.page.getByRole('button', { name: 'Send message' }).click();
    else await this.message.press('Enter');
  }

  answers(agent: string): Locator {
    return this.log.getByRole('article', { name: agent, exact: true });
  }

  /** The newest answer of an agent, once it is complete. */
  async answer(agent: string, text: string | RegExp): Promise<Locator> {
    const answer = this.answers(agent).filter({ hasText: text }).last();
    await expect(answer).toBeVisible();
    await expect(answer).toHaveAttribute('aria-busy', 'false');
    return answer;
  }

  /** How often a sentence stands in the conversation. */
  times(text: string): Locator {
    return this.log.getByText(text);
  }

  get threadId(): string {
    return /threads\/([0-9a-f-]+)/.exec(this.page.url())?.[1] ?? '';
  }
}
