"""A method that knows no text learns an environment of the suite through Gymnasium."""

import gymnasium
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO

from gymsuite.numeric import NumericEnv

EPISODES = 100


def device() -> NumericEnv:
    return NumericEnv(gymnasium.make("gymsuite.gym:tools/dial-v1"), size=3, bound=6)


def mean_reward(policy: PPO) -> float:
    """As the policy samples, not its best guess, over new episodes."""
    env = device()
    rewards = []
    for seed in range(EPISODES):
        numbers, _ = env.reset(seed=seed)
        done = False
        while not done:
            action, _ = policy.predict(numbers)
            numbers, reward, terminated, truncated, _ = env.step(np.int64(action))
            done = terminated or truncated
        rewards.append(reward)
    env.close()
    return float(np.mean(rewards))


@pytest.mark.slow
def test_ppo_learns_the_dial() -> None:
    torch.set_num_threads(1)
    env = device()
    policy = PPO(
        "MlpPolicy",
        env,
        n_steps=512,
        batch_size=128,
        learning_rate=3e-3,
        seed=0,
        device="cpu",
    )
    before = mean_reward(policy)
    policy.learn(10_000)
    after = mean_reward(policy)
    env.close()
    assert before < 0.2
    assert after > 1.0
